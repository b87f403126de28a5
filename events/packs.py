"""The layout of pack files, which hold the blobs of a run: how blobs are written and found again.

A pack is a header, blobs one after the other, and perhaps zeros behind them for the blobs to come;
all integers little endian:

    header  magic 8 | version u32 | mark 4 | id 12 | crc32 of these u32
    blob    mark 4 | sha256 of the raw bytes 32 | stored bytes u32 | raw bytes u32 | compression u8
            | crc32 of these u32 | the stored bytes

Mark and id are random. A pack that is written anew, without blobs that were removed, keeps the mark
and gets another id. The mark differs from pack to pack, so that a pack which is itself inside a
blob is never taken for blobs of the pack around it.

A pack is read by its headers alone. Where no blob begins that should, the next one is searched for,
so that damage to one blob hides no other. What ends behind the end of the file is no blob.
"""

import os
import struct
import zlib
from collections.abc import Container, Iterator
from io import FileIO
from typing import NamedTuple

VERSION = 1
MAGIC = b"KWPACK\r\n"
MARK_BYTES = 4
ID_BYTES = 12
MAX_RAW_BYTES = 1 << 28
"""No blob is larger, and no reader makes room for more."""
MAX_READ_BYTES = 1 << 29
"""What lies behind is not read: no pack is as long."""

_PACK = struct.Struct("<8sI4s12sI")
_BLOB = struct.Struct("<4s32sIIBI")
_CRC = struct.Struct("<I")
_FIELD_BYTES = _BLOB.size - _CRC.size
HEADER_BYTES = _PACK.size
WINDOW_BYTES = 1 << 14
SEARCH_BYTES = 1 << 20


class Head(NamedTuple):
    """The beginning of a pack."""

    data: bytes
    mark: bytes
    """If the header is damaged, that of the first blob; empty if the version is not known."""
    flaw: str | None
    """What is wrong with the header."""


class Packed(NamedTuple):
    """A blob as it is to be stored."""

    name: bytes
    n_raw: int
    compression: int
    stored: bytes


class Entry(NamedTuple):
    """A blob in a pack, as its header describes it."""

    name: bytes
    """The SHA-256 of its raw bytes."""
    begin: int
    end: int
    n_raw: int
    compression: int

    @property
    def n_stored(self) -> int:
        """Bytes after the header."""
        return self.end - self.begin - _BLOB.size


def read(file: FileIO, n_bytes: int, offset: int) -> bytes:
    """Return bytes from a place of a file; fewer if it ends before."""
    file.seek(offset)
    return file.read(n_bytes)


def header(mark: bytes, pack_id: bytes) -> bytes:
    """Return the header of a pack."""
    return _sealed(_PACK.pack(MAGIC, VERSION, mark, pack_id, 0))


def blob(mark: bytes, packed: Packed) -> bytes:
    """Return the bytes of a blob in the pack with this mark."""
    name, n_raw, compression, stored = packed
    return _sealed(_BLOB.pack(mark, name, len(stored), n_raw, compression, 0)) + stored


def head_of(file: FileIO) -> Head:
    """Read the beginning of a pack."""
    data = read(file, HEADER_BYTES + MARK_BYTES, 0)
    own, first = data[:HEADER_BYTES], data[HEADER_BYTES:]
    if len(own) < HEADER_BYTES or not own.startswith(MAGIC) or _sealed(own) != own:
        return Head(own, first, "the header of the pack is damaged")
    _, version, mark, _, _ = _PACK.unpack(own)
    if version != VERSION:
        reason = f"unknown version {version} of packs (written by a newer version of the program?)"
        return Head(own, b"", reason)
    return Head(own, mark, None)


def entry_at(file: FileIO, begin: int) -> Entry | None:
    """The blob that begins at a place of a pack, if one does."""
    head = read(file, _BLOB.size, begin)
    if len(head) < _BLOB.size or _sealed(head) != head:
        return None
    _, name, n_stored, n_raw, compression, _ = _BLOB.unpack(head)
    return Entry(name, begin, begin + _BLOB.size + n_stored, n_raw, compression)


def stored_bytes(file: FileIO, entry: Entry) -> bytes:
    """The bytes of a blob as they are stored; fewer if the file ends before.

    Raises:
        ValueError: the header claims more than a blob may have.
    """
    if max(entry.n_raw, entry.n_stored) > MAX_RAW_BYTES:
        raise ValueError(f"its header claims more than {MAX_RAW_BYTES:,} bytes")
    return read(file, entry.n_stored, entry.begin + _BLOB.size)


def walk(file: FileIO, mark: bytes, at: int = HEADER_BYTES) -> Iterator[tuple[bytes, int, int]]:
    """Iterate over the blobs of a pack from ``at`` on: name, begin and end of each.

    Plain tuples from windows of the file, because a run may have hundreds of thousands of blobs;
    no memory map, because a writer that cuts the file would kill a reader of one.
    """
    size = min(os.fstat(file.fileno()).st_size, MAX_READ_BYTES) if mark else 0
    while at < size and len(window := read(file, WINDOW_BYTES, at)) >= _BLOB.size:
        place, stop = 0, len(window) - _BLOB.size
        while place <= stop:
            found, name, n_stored, _, _, crc = _BLOB.unpack_from(window, place)
            begin = at + place
            end = begin + _BLOB.size + n_stored
            fields = window[place : place + _FIELD_BYTES]
            if found != mark or end > size or zlib.crc32(fields) != crc:
                at = _next_blob(file, mark, begin + 1, size)
                break
            yield name, begin, end
            place += end - begin
        else:
            at += place


def flaws(file: FileIO) -> Iterator[tuple[int, str]]:
    """Iterate over the parts of a pack that are no blobs: where each begins, and what it is."""
    head, at = head_of(file), HEADER_BYTES
    if head.flaw:
        yield 0, head.flaw
    if not head.mark:
        return
    for _, begin, end in walk(file, head.mark):
        if begin > at:
            yield at, f"no blob can be read in {begin - at} bytes"
        at = end
    if read(file, SEARCH_BYTES, at).strip(b"\0"):
        yield at, "no blob can be read from here to the end"


def without(file: FileIO, names: Container[bytes], pack_id: bytes) -> bytes | None:
    """Return a pack of this id without some blobs; None if it has none of them.

    All else stays as it is, but for zeros at the end.
    """
    head = head_of(file)
    spans = list(walk(file, head.mark))
    if not any(name in names for name, _, _ in spans):
        return None
    whole = read(file, min(os.fstat(file.fileno()).st_size, MAX_READ_BYTES), 0)
    kept, at = [header(head.mark, pack_id)], HEADER_BYTES
    for name, begin, end in spans:
        if name in names:
            kept.append(whole[at:begin])
            at = end
    last = spans[-1][2]
    return b"".join((*kept, whole[at:last], whole[last:].rstrip(b"\0")))


def _next_blob(file: FileIO, mark: bytes, at: int, size: int) -> int:
    """Where the next blob begins at or after ``at``; ``size`` if none does."""
    while at < size and len(window := read(file, WINDOW_BYTES, at)) >= _BLOB.size:
        stop = len(window) - _BLOB.size + MARK_BYTES
        place = window.find(mark, 0, stop)
        while place >= 0:
            head = window[place : place + _BLOB.size]
            if _sealed(head) == head:
                return at + place
            place = window.find(mark, place + 1, stop)
        at += stop - MARK_BYTES + 1
    return size


def _sealed(head: bytes) -> bytes:
    """A header with the checksum that belongs there."""
    fields = head[: -_CRC.size]
    return fields + _CRC.pack(zlib.crc32(fields))
