"""The layout of frames: how batches of records become bytes and how bytes are checked.

A segment is a header and frames, one frame per batch, and at last a seal; for header and seal see
`events.segments`. All integers are little endian:

    frame header  magic 4 | salt 4 | first seq u64 | epoch u32 | records u32 | body bytes u32
                  | crc32(body) u32 | chain 32 | crc32 of these u32
    body          msgpack array of records

The salt is the first bytes of the random log id, so that no other log's frame passes for one of
ours. The epoch is the number of the writer. chain = sha256(previous chain, frame header before the
chain, body); the first previous chain is the sha256 of the segment's header. The header has a
checksum of its own, so that a damaged length cannot make the rest of the file look like a torn
tail.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

FRAME_MAGIC = b"KWfr"
MAX_BODY_BYTES = 1 << 28
MAX_EPOCH = (1 << 32) - 1
MAX_SEQ = 1 << 63
"""No run gets as far; a forged log may say that it did."""
STALE = "it was written by a writer that had been replaced"

_FIELDS = struct.Struct("<4s4sQIIII")
_FRAME = struct.Struct("<4s4sQIIII32sI")
_CRC = struct.Struct("<I")
FRAME_HEADER_BYTES = _FRAME.size


class Position(NamedTuple):
    """A place between two frames, with all that the next frame is checked against."""

    salt: bytes
    segment: int
    """Number of the first record of the segment, which names its file."""
    offset: int
    """In that file."""
    seq: int
    """Of the next record; equally the number of records before."""
    chain: bytes
    epoch: int
    """Of the last writer before."""


class Frame(NamedTuple):
    """A frame that passed every check."""

    start: Position
    end: Position
    body: bytes


@dataclass(frozen=True)
class Flaw:
    """Why there is no valid frame at a position."""

    reason: str
    tearable: bool
    """A write that a crash cut off can look like this."""


def pack(at: Position, body: bytes, n_records: int, epoch: int) -> tuple[bytes, Position]:
    """Return the bytes of a frame that writer ``epoch`` puts at ``at``, and the position after."""
    n_bytes = len(body)
    fields = _FIELDS.pack(FRAME_MAGIC, at.salt, at.seq, epoch, n_records, n_bytes, zlib.crc32(body))
    chain = _chained(at.chain, fields, body)
    end = at.offset + FRAME_HEADER_BYTES + n_bytes
    data = with_crc(fields + chain) + body
    return data, Position(at.salt, at.segment, end, at.seq + n_records, chain, epoch)


def take(at: Position, read: Callable[[int], bytes]) -> Frame | Flaw:
    """Check the frame at ``at``.

    Args:
        at: where the frame must follow on.
        read: returns the next so many bytes of the file, fewer only at its end.

    Returns:
        The frame, or what is wrong with it.
    """
    header = read(FRAME_HEADER_BYTES)
    if not _is_frame_header(header, at.salt):
        return Flaw("the frame header is damaged", tearable=True)
    _, _, seq, epoch, n_records, n_bytes, crc = _FIELDS.unpack_from(header)
    if seq != at.seq:
        story = "records are missing" if seq > at.seq else "records are repeated or out of order"
        return Flaw(f"the frame begins with record {seq}: {story}", tearable=False)
    if epoch < at.epoch:
        return Flaw(STALE, tearable=False)
    if n_bytes > MAX_BODY_BYTES:
        return Flaw(f"no frame has a body of {n_bytes} bytes", tearable=False)
    body = read(n_bytes)
    if len(body) != n_bytes or zlib.crc32(body) != crc:
        return Flaw("the checksum of the frame's body does not match", tearable=True)
    data, end = pack(at, body, n_records, epoch)
    if data[:FRAME_HEADER_BYTES] != header:
        return Flaw("the hash chain to the records before is broken", tearable=False)
    return Frame(at, end, body)


def walk(data: bytes, at: Position) -> Iterator[Frame]:
    """Iterate over the valid frames that begin at ``at`` and lie wholly in ``data``.

    Args:
        data: the bytes of the file from ``at`` on, as many as there are at hand.
        at: where the first frame must follow on.
    """
    start = at
    for step in _steps(data, at):
        end = _after(at, step)
        yield Frame(start, end, data[step.place + FRAME_HEADER_BYTES : step.stop])
        start = end


def last(data: bytes, at: Position) -> Iterator[Frame]:
    """The last of the frames that `walk` finds, if any, in a third of its time."""
    before = _Step(0, 0, at.seq, at.chain, at.epoch)
    found: _Step | None = None
    for step in _steps(data, at):
        before, found = found or before, step
    if found:
        body = data[found.place + FRAME_HEADER_BYTES : found.stop]
        yield Frame(_after(at, before), _after(at, found), body)


def skim(data: bytes, at: Position) -> Iterator[Frame]:
    """As `walk`, over a whole file that is known to be as it was written: reads headers only."""
    start = at
    while start.offset + FRAME_HEADER_BYTES <= len(data):
        magic, salt, seq, epoch, n, n_bytes, _, chain, _ = _FRAME.unpack_from(data, start.offset)
        begin = start.offset + FRAME_HEADER_BYTES
        stop = begin + n_bytes
        if magic != FRAME_MAGIC or salt != at.salt or stop > len(data):
            return
        end = Position(at.salt, at.segment, stop, seq + n, chain, epoch)
        yield Frame(start, end, data[begin:stop])
        start = end


class _Step(NamedTuple):
    """A valid frame among bytes: where it begins and ends there, and what is so after it."""

    place: int
    stop: int
    seq: int
    chain: bytes
    epoch: int


def _after(at: Position, step: _Step) -> Position:
    """The position after a step among bytes that begin at ``at``."""
    offset = at.offset + step.stop
    return Position(at.salt, at.segment, offset, step.seq, step.chain, step.epoch)


def _steps(data: bytes, at: Position) -> Iterator[_Step]:
    """Check as `take` does, without its words for what is wrong."""
    place, seq, chain, writer = 0, at.seq, at.chain, at.epoch
    while place + FRAME_HEADER_BYTES <= len(data):
        magic, salt, first, epoch, n, n_bytes, crc, found, check = _FRAME.unpack_from(data, place)
        if magic != FRAME_MAGIC or salt != at.salt or first != seq or epoch < writer:
            return
        begin = place + FRAME_HEADER_BYTES
        stop = begin + n_bytes
        if stop > len(data) or zlib.crc32(data[place : begin - _CRC.size]) != check:
            return
        body = data[begin:stop]
        chain = _chained(chain, data[place : place + _FIELDS.size], body)
        if zlib.crc32(body) != crc or chain != found:
            return
        seq, writer = seq + n, epoch
        yield _Step(place, stop, seq, chain, epoch)
        place = stop


def has_later_frame(rest: bytes, at: Position) -> bool:
    """Whether a frame written after the one at ``at`` begins in ``rest``, the bytes from there on.

    If so, that one was finished, and the damage before it is no torn tail.
    """
    mark = FRAME_MAGIC + at.salt
    found = rest.find(mark, 1)
    while found >= 0:
        header = rest[found : found + FRAME_HEADER_BYTES]
        if _is_frame_header(header, at.salt) and _FIELDS.unpack_from(header)[2] >= at.seq:
            return True
        found = rest.find(mark, found + 1)
    return False


def with_crc(fields: bytes) -> bytes:
    """Return ``fields`` with their checksum behind them."""
    return fields + _CRC.pack(zlib.crc32(fields))


def has_crc(data: bytes) -> bool:
    """Whether ``data`` ends with the checksum of what is before it."""
    return _CRC.pack(zlib.crc32(memoryview(data)[: -_CRC.size])) == data[-_CRC.size :]


def _chained(chain: bytes, fields: bytes, body: bytes) -> bytes:
    return hashlib.sha256(chain + fields + body).digest()


def _is_frame_header(header: bytes, salt: bytes) -> bool:
    return (
        len(header) == FRAME_HEADER_BYTES
        and header.startswith(FRAME_MAGIC + salt)
        and has_crc(header)
    )
