"""How far the log was durable when an append last returned: advisory, never synced, never refused.

It is written after the log, so it may lag behind; where it is unreadable it says nothing. It tells
a torn tail from a cut-off or damaged end.

    salt 4 | segment u64 | records u64 | offset in the segment u64 | crc32 of these u32
"""

import struct
from pathlib import Path
from typing import NamedTuple

from events.disk import read_small
from events.frames import Position, has_crc, with_crc

MARK_NAME = "acknowledged"

_FIELDS = struct.Struct("<4sQQQ")
MARK_BYTES = _FIELDS.size + 4


class Mark(NamedTuple):
    """What was acknowledged."""

    salt: bytes
    segment: int
    seq: int
    """Number of records."""
    offset: int
    """In the segment."""


def read_mark(run: Path) -> Mark | None:
    """How far the log was acknowledged; None if that is not known."""
    data = read_small(run / MARK_NAME, MARK_BYTES)
    if data is None or len(data) != MARK_BYTES or not has_crc(data):
        return None
    return Mark._make(_FIELDS.unpack_from(data))


def mark_bytes(at: Position) -> bytes:
    """What the mark says of a log that is durable up to ``at``."""
    return with_crc(_FIELDS.pack(at.salt, at.segment, at.seq, at.offset))
