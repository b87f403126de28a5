"""Which records of a segment are about which candidate: a file derived from it, never believed.

``log/<first>.idx`` stands beside the sealed segment ``log/<first>.seg`` and may be deleted: it is
made again. It counts only while it is of the same segment, codec and layout; what it points to is
read from the segment. All integers are little endian:

    magic 8 | schema of the code that made it 32 | sha256 of the segment before its seal 32
            | three columns of u32, a value a record | crc32 of these u32

The columns: offset of the record's frame, its candidate, and the request that it answers, each of
the last two modulo 2**32 and 0 if there is none. They only narrow down what is read.
"""

import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from events import codec
from events.codec import Outline
from events.disk import read_small
from events.frames import has_crc, with_crc
from events.vocabulary import Reply

SUFFIX = ".idx"
MAGIC = b"KWIDX\r\n\x01"
"""The last byte is the version of all that this module decides."""
_HEAD = struct.Struct("<8s32s32s")
_VALUE = np.dtype("<u4")
_MODULUS = 1 << 32
_REPLIES = frozenset(model.model_fields["kind"].default for model in get_args(Reply))


class Link(NamedTuple):
    """What a record is about, as an index has it."""

    candidate: int
    request: int


class Index(NamedTuple):
    """The index of a segment, or of the part of one that there is."""

    first: int
    """Number of the first record."""
    columns: NDArray[np.uint32]
    """A row each for offsets, candidates and requests."""

    def about(self, candidate: int) -> Iterator[int]:
        """Numbers of the records whose event names a candidate, and perhaps of others."""
        return self._numbers(self.columns[1] == candidate % _MODULUS)

    def answers(self, requests: Collection[int]) -> Iterator[int]:
        """Numbers of the replies to some records, and perhaps of others."""
        return self._numbers(np.isin(self.columns[2], [seq % _MODULUS for seq in requests if seq]))

    def within(self, seqs: Iterable[int]) -> Iterator[int]:
        """Those of some records that are in the segment, in order."""
        end = self.first + self.columns.shape[1]
        return (seq for seq in sorted(seqs) if self.first <= seq < end)

    def link(self, seq: int) -> Link:
        """What it says of a record."""
        _, candidate, request = self.columns[:, seq - self.first].tolist()
        return Link(candidate, request)

    def frame(self, seq: int) -> tuple[int, int]:
        """Offset and first record of the frame that holds a record."""
        offsets = self.columns[0]
        offset = offsets[seq - self.first]
        return int(offset), self.first + int(np.searchsorted(offsets, offset))

    def packed(self, digest: bytes) -> bytes:
        """Return the file of the index of a segment with this sha256 before its seal."""
        return with_crc(_head(digest) + self.columns.tobytes())

    def _numbers(self, chosen: NDArray[np.bool_]) -> Iterator[int]:
        return iter((np.flatnonzero(chosen) + self.first).tolist())


class Indexer:
    """Makes the index of a segment as its frames are read in order."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._rows: list[tuple[int, int, int]] = []

    def add(self, offset: int, outlines: Iterable[Outline]) -> None:
        """Take in the records of the frame at ``offset``."""
        self._rows += [(offset, *link(outline)) for outline in outlines]

    def index(self) -> Index:
        """Return the index of what was taken in."""
        rows = np.array(self._rows, dtype=_VALUE).reshape(-1, 3)
        return Index(self._first, np.ascontiguousarray(rows.T))


def link(outline: Outline) -> Link:
    """What the index of a segment says of a record."""
    kind, candidate, because = outline
    request = because[0] if kind in _REPLIES and because else 0
    return Link((candidate or 0) % _MODULUS, request % _MODULUS)


def index_path(segment: Path) -> Path:
    """Where the index of a segment is."""
    return segment.with_suffix(SUFFIX)


def load(segment: Path, first: int, digest: bytes) -> Index | None:
    """Return the index that is there for a sealed segment; None if it does not count.

    Args:
        segment: the file.
        first: number of its first record.
        digest: sha256 of the file before its seal.
    """
    # None is longer than its segment, where a record takes more than its row here.
    data = read_small(index_path(segment), segment.stat().st_size)
    if data is None:
        return None
    n_values, odd = divmod(len(data) - _HEAD.size - 4, _VALUE.itemsize)
    if odd or n_values % 3 or not data.startswith(_head(digest)) or not has_crc(data):
        return None
    columns = np.frombuffer(data, _VALUE, n_values, _HEAD.size)
    return Index(first, columns.reshape(3, -1))


def store(segment: Path, index: Index, digest: bytes) -> None:
    """Write an index if that can be done: half of one does not count, and none is no harm."""
    path = index_path(segment)
    try:
        path.unlink(missing_ok=True)  # it may be a pipe, or a link to somewhere else
        path.write_bytes(index.packed(digest))
    except OSError:
        with suppress(OSError):
            path.unlink()


def misleads(segment: Path, index: Index, digest: bytes) -> bool:
    """Whether there is a file that counts for a segment and is not this, its index."""
    known = load(segment, index.first, digest)
    return known is not None and not np.array_equal(known.columns, index.columns)


def _head(digest: bytes) -> bytes:
    return _HEAD.pack(MAGIC, codec.SCHEMA, digest)
