"""Which blobs of a run were given up on purpose, and by which record."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from events.blob_names import blobs_of
from events.blobs import Blobs
from events.errors import BlobCorruptError, BlobMissingError
from events.vocabulary import BlobsPruned, Record, Sha

_NAME = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)


class Pruned:
    """A projection of the log, kept apart from `State` because it reads blobs.

    Attributes:
        by: the record that pruned each blob. A blob that a later record names is there again,
            since blobs are durable before the event that names them.
    """

    def __init__(self, read: Callable[[Sha], bytes]) -> None:
        self.by: dict[Sha, int] = {}
        self._read = read

    def apply(self, record: Record) -> None:
        """Take in one record; a list that cannot be read excuses no blob."""
        for sha in blobs_of(record.event):
            self.by.pop(sha, None)
        if isinstance(record.event, BlobsPruned):
            with suppress(BlobMissingError, BlobCorruptError):
                names = unlisted(self._read(record.event.list))
                self.by.update(dict.fromkeys(names, record.seq))


def listed(names: Iterable[Sha]) -> bytes:
    """The blob that holds the names of pruned blobs, one a line."""
    return "".join(f"{sha}\n" for sha in sorted(names)).encode()


def unlisted(data: bytes) -> tuple[Sha, ...]:
    """The names in such a blob; what is no name is left out."""
    return tuple(_NAME.findall(data.decode("ascii", errors="replace")))


def pruned(records: Iterable[Record], blobs: Blobs) -> dict[Sha, int]:
    """The blobs that were given up and are not named again, with the record that says so."""
    projection = Pruned(blobs.get)
    for record in records:
        projection.apply(record)
    return projection.by


class KnownBlobs(Blobs):
    """The blobs of a run, which tells those that were pruned from those that are gone."""

    def __init__(self, run: Path, pruned: Mapping[Sha, int]) -> None:
        super().__init__(run)
        self._pruned = pruned

    @classmethod
    def of(cls, run: Path, records: Iterable[Record]) -> "KnownBlobs":
        """The blobs of a run with these records."""
        return cls(run, pruned(records, Blobs(run)))

    def get(self, sha: Sha) -> bytes:
        """As `Blobs.get`; a `BlobMissingError` names the record that pruned the blob, if any."""
        try:
            return super().get(sha)
        except BlobMissingError as e:
            raise BlobMissingError(e.sha, self._pruned.get(sha)) from None
