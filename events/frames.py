"""The layout of the log file: how batches of records become bytes and how bytes are checked.

A file is a header and frames, one frame per batch, all integers little endian:

    file header   magic 8 | format version u32 | log id 16 | crc32 of these u32
    frame header  magic 4 | salt 4 | first seq u64 | records u32 | body bytes u32 | crc32(body) u32
                  | chain 32 | crc32 of these u32
    body          msgpack array of records

The salt is the first bytes of the random log id, so that no other log's frame passes for one of
ours. chain = sha256(previous chain, frame header before the chain, body); the first previous chain
is the sha256 of the file header. The header has a checksum of its own, so that a damaged length
cannot make the rest of the file look like a torn tail.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from events.errors import LogCorruptError, LogSchemaError

FORMAT = 1
FILE_MAGIC = b"KWLOG\r\n\x1a"
FRAME_MAGIC = b"KWfr"
LOG_ID_BYTES = 16
MAX_BODY_BYTES = 1 << 28

_FILE_FIELDS = struct.Struct("<8sI16s")
_FRAME_FIELDS = struct.Struct("<4s4sQIII")
_FRAME = struct.Struct("<4s4sQIII32sI")
_CRC = struct.Struct("<I")
_CHAIN_BYTES = hashlib.sha256().digest_size
FILE_HEADER_BYTES = _FILE_FIELDS.size + _CRC.size
FRAME_HEADER_BYTES = _FRAME_FIELDS.size + _CHAIN_BYTES + _CRC.size


@dataclass(frozen=True)
class Position:
    """A place between two frames, with all that the next frame is checked against."""

    salt: bytes
    offset: int
    seq: int
    """Of the next record; equally the number of records before."""
    chain: bytes


@dataclass(frozen=True)
class Frame:
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


def file_header(log_id: bytes) -> bytes:
    """Return the header of a new log with the random ``log_id`` (16 bytes)."""
    return _sealed(_FILE_FIELDS.pack(FILE_MAGIC, FORMAT, log_id))


def start(path: Path, header: bytes) -> Position:
    """Check a file header and return the position of the first frame.

    Raises:
        LogCorruptError: it is not the header of a log.
        LogSchemaError: the log has a format that is not known here.
    """
    if len(header) != FILE_HEADER_BYTES or not _is_sealed(header):
        raise LogCorruptError(path, 0, 0, "the file header is damaged")
    magic, version, log_id = _FILE_FIELDS.unpack_from(header)
    if magic != FILE_MAGIC:
        raise LogCorruptError(path, 0, 0, "the file is not a log")
    if version != FORMAT:
        raise LogSchemaError(path, 0, 0, f"unknown log format {version}")
    chain = hashlib.sha256(header).digest()
    return Position(log_id[:4], len(header), 0, chain)


def pack(at: Position, body: bytes, n_records: int) -> tuple[bytes, Position]:
    """Return the bytes of a frame to be written at ``at``, and the position after it."""
    fields = _FRAME_FIELDS.pack(
        FRAME_MAGIC, at.salt, at.seq, n_records, len(body), zlib.crc32(body)
    )
    chain = _chained(at.chain, fields, body)
    data = _sealed(fields + chain) + body
    return data, Position(at.salt, at.offset + len(data), at.seq + n_records, chain)


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
    _, _, seq, n_records, n_bytes, crc = _FRAME_FIELDS.unpack_from(header)
    if seq != at.seq:
        story = "records are missing" if seq > at.seq else "records are repeated or out of order"
        return Flaw(f"the frame begins with record {seq}: {story}", tearable=False)
    body = read(n_bytes)
    if len(body) != n_bytes or zlib.crc32(body) != crc:
        return Flaw("the checksum of the frame's body does not match", tearable=True)
    data, end = pack(at, body, n_records)
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
        end = Position(at.salt, at.offset + step.stop, step.seq, step.chain)
        yield Frame(start, end, data[step.place + FRAME_HEADER_BYTES : step.stop])
        start = end


def last(data: bytes, at: Position) -> Iterator[Frame]:
    """The last of the frames that `walk` finds, if any, in a third of its time."""
    before = _Step(0, 0, at.seq, at.chain)
    found: _Step | None = None
    for step in _steps(data, at):
        before, found = found or before, step
    if found:
        start = Position(at.salt, at.offset + found.place, before.seq, before.chain)
        end = Position(at.salt, at.offset + found.stop, found.seq, found.chain)
        yield Frame(start, end, data[found.place + FRAME_HEADER_BYTES : found.stop])


class _Step(NamedTuple):
    """A valid frame among bytes: where it begins and ends there, and seq and chain after it."""

    place: int
    stop: int
    seq: int
    chain: bytes


def _steps(data: bytes, at: Position) -> Iterator[_Step]:
    """Check as `take` does, without its words for what is wrong."""
    place, seq, chain = 0, at.seq, at.chain
    while place + FRAME_HEADER_BYTES <= len(data):
        magic, salt, first, n_records, n_bytes, crc, found, seal = _FRAME.unpack_from(data, place)
        if magic != FRAME_MAGIC or salt != at.salt or first != seq:
            return
        begin = place + FRAME_HEADER_BYTES
        stop = begin + n_bytes
        if stop > len(data) or zlib.crc32(data[place : begin - _CRC.size]) != seal:
            return
        body = data[begin:stop]
        chain = _chained(chain, data[place : place + _FRAME_FIELDS.size], body)
        if zlib.crc32(body) != crc or chain != found:
            return
        seq += n_records
        yield _Step(place, stop, seq, chain)
        place = stop


def has_later_frame(rest: bytes, at: Position) -> bool:
    """Whether a frame written after the one at ``at`` begins in ``rest``, the bytes from there on.

    If so, that one was finished, and the damage before it is no torn tail.
    """
    mark = FRAME_MAGIC + at.salt
    found = rest.find(mark, 1)
    while found >= 0:
        header = rest[found : found + FRAME_HEADER_BYTES]
        if _is_frame_header(header, at.salt) and _FRAME_FIELDS.unpack_from(header)[2] >= at.seq:
            return True
        found = rest.find(mark, found + 1)
    return False


def _chained(chain: bytes, fields: bytes, body: bytes) -> bytes:
    return hashlib.sha256(chain + fields + body).digest()


def _sealed(fields: bytes) -> bytes:
    return fields + _CRC.pack(zlib.crc32(fields))


def _is_sealed(header: bytes) -> bool:
    return _sealed(header[: -_CRC.size]) == header


def _is_frame_header(header: bytes, salt: bytes) -> bool:
    return (
        len(header) == FRAME_HEADER_BYTES
        and header.startswith(FRAME_MAGIC + salt)
        and _is_sealed(header)
    )
