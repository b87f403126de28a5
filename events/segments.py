"""The files that a log consists of: their names, and the header and the seal of each.

The records of a run are in ``log/<number of the first record, 20 digits>.seg``, one segment after
the other. Only the last one is open; every other ends with its seal. Around the frames, which
`events.frames` describes, a segment has, all integers little endian:

    header  magic 8 | format u32 | log id 16 | first seq u64 | epoch u32 | schema 32
            | chain of the seal before 32, zeros in the first segment | crc32 of these u32
    seal    magic 4 | salt 4 | next seq u64 | epoch u32 | sha256 of the file before the seal 32
            | blob root 32 | blobs u32 | chain 32 | crc32 of these u32

The schema is the fingerprint of the vocabulary in which the records are written. The blob root is
the sha256 over the names, as raw bytes, of the blobs that the segment's records are the first to
name. chain = sha256(previous chain, seal before the chain). So each segment is bound to all before
it, and by its seal alone.
"""

import hashlib
import os
import re
import struct
from pathlib import Path
from typing import NamedTuple

from events.disk import MAX_SPARE_BYTES
from events.errors import LogCorruptError, LogSchemaError
from events.frames import (
    FRAME_HEADER_BYTES,
    MAX_BODY_BYTES,
    STALE,
    Flaw,
    Position,
    has_crc,
    with_crc,
)

MAX_RECORDS = 16_384
MAX_BYTES = 1 << 26
"""A segment that holds so many records or bytes takes no more."""
FOLDER = "log"
FORMAT = 2
FILE_MAGIC = b"KWLOG\r\n\x1a"
SEAL_MAGIC = b"KWsl"
LOG_ID_BYTES = 16
NO_CHAIN = bytes(32)

_VERSION = struct.Struct("<8sI")
_HEADER = struct.Struct("<8sI16sQI32s32s")
_SEAL = struct.Struct("<4s4sQI32s32sI")
HEADER_BYTES = _HEADER.size + 4
SEAL_BYTES = _SEAL.size + 32 + 4
MAX_FILE_BYTES = MAX_BYTES + FRAME_HEADER_BYTES + MAX_BODY_BYTES + MAX_SPARE_BYTES
"""No segment is longer: one batch goes over its limit, and a spare or the seal is behind it."""
SUFFIX = ".seg"
_NAME = re.compile(r"[0-9]{20}\.seg")


class Header(NamedTuple):
    """What a segment says of itself at its beginning."""

    log_id: bytes
    first: int
    """Number of its first record."""
    epoch: int
    """Of the writer that began it; 0 in a new log, which nobody has written to."""
    schema: bytes
    previous: bytes
    """Chain of the seal before; `NO_CHAIN` in the first segment."""


def new_header(log_id: bytes, schema: bytes) -> Header:
    """Return the header of the first segment of a new log with the random ``log_id``, 16 bytes."""
    return Header(log_id, 0, 0, schema, NO_CHAIN)


class Contents(NamedTuple):
    """What a seal says of the segment before it."""

    digest: bytes
    """sha256 of the file up to the seal."""
    root: bytes
    """sha256 over the names of the blobs that the records are the first to name."""
    n_blobs: int


class Seal(NamedTuple):
    """A seal that passed every check."""

    start: Position
    end: Position
    contents: Contents


def segment_name(first: int) -> str:
    """Return the name of the segment that begins with record ``first``."""
    return f"{first:020d}{SUFFIX}"


def segment_path(run: Path, first: int) -> Path:
    """Return where that segment is."""
    return run / FOLDER / segment_name(first)


def segments_of(run: Path) -> list[int]:
    """Return the first records of all segments that there are, in order."""
    try:
        names = os.listdir(run / FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name[:20]) for name in names if _NAME.fullmatch(name))


def holds_log(run: Path) -> bool:
    """Whether there is a log in a folder, whole or not."""
    return bool(segments_of(run))


def is_full(at: Position) -> bool:
    """Whether the segment up to ``at`` takes no more."""
    return at.seq - at.segment >= MAX_RECORDS or at.offset >= MAX_BYTES


def pack_header(header: Header) -> tuple[bytes, Position]:
    """Return the bytes that a segment begins with, and the position after them."""
    data = with_crc(_HEADER.pack(FILE_MAGIC, FORMAT, *header))
    return data, _beginning(header, data)


def take_header(path: Path, data: bytes, before: Position | None) -> tuple[Header, Position]:
    """Check the first bytes of a segment; return what they say, and the position after them.

    Args:
        path: the file.
        data: its first `HEADER_BYTES` bytes.
        before: the end of the segment before; None if that is not known.

    Raises:
        LogCorruptError: it is not the header of this segment.
        LogSchemaError: the segment has a format that is not known here.
    """
    first = int(path.stem)
    if data[: len(FILE_MAGIC)] != FILE_MAGIC or len(data) < _VERSION.size:
        raise LogCorruptError(path, 0, first, "the file is not a segment of a log")
    if (version := _VERSION.unpack_from(data)[1]) != FORMAT:
        raise LogSchemaError(path, 0, first, f"unknown log format {version}")
    if len(data) != HEADER_BYTES or not has_crc(data):
        raise LogCorruptError(path, 0, first, "the segment's header is damaged")
    header = Header._make(_HEADER.unpack_from(data)[2:])
    if reason := _misfit(header, first, before):
        raise LogCorruptError(path, 0, first, reason)
    return header, _beginning(header, data)


def pack_seal(at: Position, contents: Contents, epoch: int) -> tuple[bytes, Position]:
    """Return the seal that writer ``epoch`` puts at ``at``, and the position after it."""
    fields = _SEAL.pack(SEAL_MAGIC, at.salt, at.seq, epoch, *contents)
    chain = hashlib.sha256(at.chain + fields).digest()
    end = at._replace(offset=at.offset + SEAL_BYTES, chain=chain, epoch=epoch)
    return with_crc(fields + chain), end


def take_seal(at: Position, data: bytes) -> Seal | Flaw:
    """Check the seal at ``at``, of which ``data`` is all but for the hash of the file before it."""
    if not is_seal(data, at.salt):
        return Flaw("the seal is damaged", tearable=True)
    _, _, seq, epoch, *contents = _SEAL.unpack_from(data)
    if seq != at.seq:
        return Flaw(f"the seal follows record {seq}: the records do not", tearable=False)
    if epoch < at.epoch:
        return Flaw(STALE, tearable=False)
    seal = Contents._make(contents)
    packed, end = pack_seal(at, seal, epoch)
    if packed != data:
        return Flaw("the hash chain from the records to the seal is broken", tearable=False)
    return Seal(at, end, seal)


def peek_seal(at: Position, data: bytes, size: int) -> Seal | None:
    """Take the last bytes of a segment for its seal without a look at its records.

    Args:
        at: the beginning of the segment.
        data: the last `SEAL_BYTES` bytes of the file.
        size: of the file.

    Returns:
        The seal, its start without a chain; None if this is none that such a segment can have.
    """
    if not is_seal(data, at.salt):
        return None
    _, _, seq, epoch, *contents = _SEAL.unpack_from(data)
    if seq < at.seq or epoch < at.epoch:
        return None
    end = Position(at.salt, at.segment, size, seq, data[_SEAL.size : _SEAL.size + 32], epoch)
    start = end._replace(offset=size - SEAL_BYTES, chain=b"")
    return Seal(start, end, Contents._make(contents))


def is_seal(data: bytes, salt: bytes) -> bool:
    """Whether ``data`` is a whole seal of a log with this salt."""
    return len(data) == SEAL_BYTES and data.startswith(SEAL_MAGIC + salt) and has_crc(data)


def has_seal(rest: bytes, at: Position) -> bool:
    """Whether a seal is in ``rest``, the bytes after ``at``: then all before it was finished."""
    found = rest.find(SEAL_MAGIC + at.salt, 1)
    while found >= 0:
        if is_seal(rest[found : found + SEAL_BYTES], at.salt):
            return True
        found = rest.find(SEAL_MAGIC + at.salt, found + 1)
    return False


def _beginning(header: Header, data: bytes) -> Position:
    chain = hashlib.sha256(data).digest()
    first = header.first
    return Position(header.log_id[:4], first, len(data), first, chain, header.epoch)


def _misfit(header: Header, first: int, before: Position | None) -> str | None:
    """Why a header cannot be that of segment ``first``, which follows on ``before``."""
    if header.first != first:
        return f"its header says that it begins with record {header.first}"
    if (first == 0) != (header.previous == NO_CHAIN):
        return "the hash chain to the segment before is broken"
    if before is None:
        return None
    if header.log_id[:4] != before.salt:
        return "it belongs to another log"
    if header.first != before.seq or header.previous != before.chain:
        return "the hash chain to the segment before is broken"
    return STALE if header.epoch < before.epoch else None
