"""Make a log again from its records: the same bytes, if the same version wrote it."""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from events import codec, frames, segments
from events.sealing import Root
from events.segments import Header
from events.vocabulary import Record


class Part(NamedTuple):
    """What an export keeps of a segment beside its records."""

    first: int
    """Number of its first record."""
    epoch: int
    """Of the writer that began it."""
    sealed_by: int | None
    """Epoch of the writer that sealed it; None if it is open."""


class Again:
    """A log that is made again: segments are begun, filled and sealed in their order.

    Attributes:
        at: its end so far.
    """

    def __init__(self, log_id: bytes, put: Callable[[int, bytes], None]) -> None:
        """Take what is called with each piece of a segment and the segment's first record."""
        self._put = put
        header = segments.new_header(log_id, codec.SCHEMA)
        self._log_id, self.at = log_id, segments.pack_header(header)[1]

    def begin(self, epoch: int) -> None:
        """Begin the first segment, or the next one after a seal."""
        first = self.at.seq
        previous = self.at.chain if first else segments.NO_CHAIN
        self._hash, self._root = hashlib.sha256(), Root()
        header = Header(self._log_id, first, epoch, codec.SCHEMA, previous)
        data, self.at = segments.pack_header(header)
        self._write(data)

    def add(self, rows: Sequence[codec.Row], epoch: int) -> tuple[Record, ...]:
        """Append a batch of writer ``epoch``; return its records as a reader will get them.

        Raises:
            ValueError: a record cannot be written down as its type says, or they are not numbered
                one after the other.
        """
        body, records = codec.pack(rows)
        if [record.seq for record in records] != list(range(self.at.seq, self.at.seq + len(rows))):
            raise ValueError(f"the records from {self.at.seq} on are not numbered one by one")
        data, self.at = frames.pack(self.at, body, len(records), epoch)
        self._root.add(records)
        self._write(data)
        return records

    def seal(self, epoch: int) -> None:
        """Seal the segment as writer ``epoch`` did."""
        contents = self._root.contents(self._hash.digest())
        data, self.at = segments.pack_seal(self.at, contents, epoch)
        self._write(data)

    def _write(self, data: bytes) -> None:
        self._hash.update(data)
        self._put(self.at.segment, data)
