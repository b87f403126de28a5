"""Ways to spoil the bytes of a file, and to make what was spoiled look as if it was written."""

import hashlib
import re
import struct
import zlib
from collections.abc import Callable

import numpy as np

from events import packs, segments
from events.frames import FRAME_HEADER_BYTES, FRAME_MAGIC, with_crc

Mutation = Callable[[bytes, np.random.Generator], bytes]

MAX_SPAN = 200
FIELD_BYTES = 110
"""As many as a header has."""
NUMBERS = (0, 1, 127, 255, 1 << 16, (1 << 28) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
"""Of which some are too large for any length."""
BODY_STARTS = (b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc1")
"""An array, a map and bytes of lengths that cannot be, and what msgpack never has."""


def _place(data: bytes, rng: np.random.Generator) -> int:
    """Anywhere, or where the fields of something are."""
    if rng.random() < 0.5:
        return int(rng.integers(len(data) + 1))
    starts = [0, *(found.start() for found in re.finditer(b"KW|" + re.escape(data[12:16]), data))]
    return min(len(data), starts[rng.integers(len(starts))] + int(rng.integers(FIELD_BYTES)))


def _span(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    begin = _place(data, rng)
    return begin, min(len(data), begin + int(rng.integers(1, MAX_SPAN)))


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip one bit."""
    at = _place(data, rng)
    return (
        data[:at] + bytes(b ^ 1 << int(rng.integers(8)) for b in data[at : at + 1]) + data[at + 1 :]
    )


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut off the end."""
    return data[: int(rng.integers(len(data) + 1))]


def remove(data: bytes, rng: np.random.Generator) -> bytes:
    """Take out a part."""
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def repeat(data: bytes, rng: np.random.Generator) -> bytes:
    """Have a part twice or more often."""
    begin, end = _span(data, rng)
    return data[:begin] + data[begin:end] * int(rng.integers(2, 40)) + data[end:]


def swap(data: bytes, rng: np.random.Generator) -> bytes:
    """Exchange two neighbouring parts."""
    begin, middle = _span(data, rng)
    end = min(len(data), middle + int(rng.integers(1, MAX_SPAN)))
    return data[:begin] + data[middle:end] + data[begin:middle] + data[end:]


def insert(data: bytes, rng: np.random.Generator) -> bytes:
    """Put random bytes in."""
    at = _place(data, rng)
    return data[:at] + rng.bytes(int(rng.integers(1, MAX_SPAN))) + data[at:]


def zeros(data: bytes, rng: np.random.Generator) -> bytes:
    """Lose a part to zeros."""
    begin, end = _span(data, rng)
    return data[:begin] + bytes(end - begin) + data[end:]


def number(data: bytes, rng: np.random.Generator) -> bytes:
    """Put a number where any may be, large ones among them."""
    at = _place(data, rng)
    value = NUMBERS[rng.integers(len(NUMBERS))]
    raw = struct.pack("<I" if rng.random() < 0.5 else ">I", value)
    return data[:at] + raw + data[at + 4 :]


def body(data: bytes, rng: np.random.Generator) -> bytes:
    """Begin something in a body that can never end."""
    at = _place(data, rng)
    start = BODY_STARTS[rng.integers(len(BODY_STARTS))]
    return data[:at] + start + data[at + len(start) :]


MUTATIONS: tuple[Mutation, ...] = (
    flip, truncate, remove, repeat, swap, insert, zeros, number, body,
)  # fmt: skip


def mended(name: str, data: bytes) -> bytes:
    """Return a spoiled file with checksums and hashes that fit, as far as it can be read at all."""
    if name.endswith(segments.SUFFIX):
        return _mended_segment(data)
    if name.endswith(".pack"):
        return _mended_pack(data)
    return with_crc(data[:-4])


def _mended_segment(data: bytes) -> bytes:
    done = with_crc(data[: segments.HEADER_BYTES - 4])
    chain = hashlib.sha256(done).digest()
    at = segments.HEADER_BYTES
    while at + FRAME_HEADER_BYTES <= len(data):
        if data.startswith(segments.SEAL_MAGIC, at):
            fields = data[at : at + 20] + hashlib.sha256(done).digest() + data[at + 52 : at + 88]
            chain = hashlib.sha256(chain + fields).digest()
            done += with_crc(fields + chain)
            at += segments.SEAL_BYTES
        elif data.startswith(FRAME_MAGIC, at):
            (n_bytes,) = struct.unpack_from("<I", data, at + 24)
            content = data[at + FRAME_HEADER_BYTES : at + FRAME_HEADER_BYTES + n_bytes]
            fields = data[at : at + 28] + struct.pack("<I", zlib.crc32(content))
            chain = hashlib.sha256(chain + fields + content).digest()
            done += with_crc(fields + chain) + content
            at += FRAME_HEADER_BYTES + len(content)
        else:
            break
    return done + data[at:]


def _mended_pack(data: bytes) -> bytes:
    done, at = with_crc(data[: packs.HEADER_BYTES - 4]), packs.HEADER_BYTES
    while data.startswith(data[12:16], at) and at + 49 < len(data):
        (n_bytes,) = struct.unpack_from("<I", data, at + 36)
        head = with_crc(data[at : at + 45])
        done += head + data[at + len(head) : at + len(head) + n_bytes]
        at += len(head) + n_bytes
    return done + data[at:]
