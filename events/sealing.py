"""What the seal and the index of a segment say, from the segment as it is on the disk."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from events import codec, frames, segments
from events.blob_names import blobs_of
from events.errors import LogCorruptError
from events.frames import Position
from events.index import Index, Indexer
from events.segments import Contents, segment_path
from events.vocabulary import Record


class Root:
    """The blobs that the records of a segment are the first to name, as its seal binds them."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._n = 0

    def add(self, records: Iterable[Record]) -> None:
        """Take in the blobs of the next records."""
        for record in records:
            for sha in blobs_of(record.event):
                self._hash.update(bytes.fromhex(sha))
                self._n += 1

    def contents(self, digest: bytes) -> Contents:
        """Return what the seal says of a file with this sha256."""
        return Contents(digest, self._hash.digest(), self._n)


class ReadBack(NamedTuple):
    """A segment that is about to be sealed."""

    contents: Contents
    its: Index


def read_back(run: Path, end: Position) -> ReadBack:
    """Read the segment before ``end`` as a reader will.

    Raises:
        LogCorruptError: it is not what was written.
        LogSchemaError: a record of it cannot be read.
    """
    path = segment_path(run, end.segment)
    data = path.read_bytes()[: end.offset]
    _, at = segments.take_header(path, data[: segments.HEADER_BYTES], None)
    root, indexer = Root(), Indexer(at.segment)
    for frame in frames.walk(data[at.offset :], at):
        records = codec.decode(path, frame)
        root.add(records)
        indexer.add(at.offset, map(codec.outline, records))
        at = frame.end
    if at[:5] != end[:5]:
        raise LogCorruptError(path, at.offset, at.seq, "what was written cannot be read back")
    return ReadBack(root.contents(hashlib.sha256(data).digest()), indexer.index())
