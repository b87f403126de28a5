"""Copy the blobs that records name from one folder to another."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from events.blob_names import blobs_of
from events.blobs import Blobs
from events.errors import BlobMissingError
from events.vocabulary import Record
from scripts.runs import UsageError

GROUP = 200
"""Blobs held in memory at a time."""


def copy_blobs(records: Iterable[Record], source: Path, to: Path) -> int:
    """Copy every blob that is there, hashing each; return how many there were.

    Raises:
        BlobCorruptError: one of them is damaged.
        LogWriteError: the disk is full or failing.
    """
    found, made, n = _found(records, Blobs(source)), Blobs(to), 0
    while group := list(islice(found, GROUP)):
        made.put_all(group)
        n += len(group)
    return n


def _found(records: Iterable[Record], blobs: Blobs) -> Iterator[bytes]:
    for sha in dict.fromkeys(sha for record in records for sha in blobs_of(record.event)):
        with suppress(BlobMissingError):
            yield blobs.get(sha)


def make_new(folder: Path, what: str) -> None:
    """Make a folder that must not hold anything yet.

    Raises:
        UsageError: it holds something; nothing was changed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; name a new folder for {what}")
    folder.mkdir(parents=True, exist_ok=True)
