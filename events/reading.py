"""Read the log of a run, with or without a writer beside; see `events.log` for its files."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from events import codec, frames
from events.errors import LogCorruptError, LogMissingError
from events.frames import Flaw, Frame, Position
from events.vocabulary import Record

LOG_NAME = "events.log"
MARK_NAME = "acknowledged"
WINDOW_BYTES = 1 << 20
SPARE_STEP = 1 << 16
MAX_SPARE_BYTES = 1 << 22

_MARK_FIELDS = struct.Struct("<4sQQ")  # salt, records, bytes
MARK_BYTES = _MARK_FIELDS.size + 4  # and their crc32

Look = Callable[[bytes, Position], Iterable[Frame]]


def read(run: Path) -> Iterator[Record]:
    """Iterate over the records of a run, with or without a writer beside.

    Every checksum, the hash chain and the numbering are verified on the way. A torn tail ends
    the iteration: nothing in it was acknowledged.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage that no crash can cause, raised at the place.
        LogSchemaError: an event kind or a format that is not known here.
    """
    path = run / LOG_NAME
    return (record for frame in _frames(run) for record in codec.decode(path, frame))


def batches(run: Path, after: Position | None = None) -> Iterator[tuple[Frame, tuple[Record, ...]]]:
    """Iterate over the batches of a run as they were appended, verifying them.

    Args:
        run: the run folder.
        after: the end of a batch that was read before, to go on from there.

    Returns:
        Each batch's frame, which knows its place and the chain hash after it, and its records.

    Raises:
        LogError: as `read`.
    """
    path = run / LOG_NAME
    return ((frame, codec.decode(path, frame)) for frame in _frames(run, after))


def read_all(run: Path) -> tuple[list[Record], str]:
    """Return the records of a run and the chain hash over these alone, hex.

    Beside a writer `read` and then `read_head` may see two lengths of one log.

    Raises:
        LogError: as `read`.
    """
    path, end = run / LOG_NAME, None
    records: list[Record] = []
    for frame in _frames(run):
        records += codec.decode(path, frame)
        end = frame.end
    return records, (end or read_start(run)).chain.hex()


def read_head(run: Path) -> str:
    """Return the chain hash over the whole log, hex, after verifying it.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage that no crash can cause.
        LogSchemaError: a format that is not known here.
    """
    return last_frame(run)[0].chain.hex()


def last_frame(run: Path) -> tuple[Position, Frame | None]:
    """Verify the log; return the position at its end and the frame before it, if any.

    Raises:
        LogError: as `read`.
    """
    frame = None
    for frame in _frames(run, look=frames.last):  # noqa: B007
        pass
    if frame:
        return frame.end, frame
    return read_start(run), None


def read_start(run: Path) -> Position:
    """Return the position before the first batch.

    Raises:
        LogError: as `read`.
    """
    with _existing(run / LOG_NAME).open("rb") as file:
        return frames.start(run / LOG_NAME, file.read(frames.FILE_HEADER_BYTES))


def torn_tail(run: Path, end: Position) -> bytes:
    """Return what a crash left of a batch after ``end``, the end of the last whole one.

    The zeros of the spare are not part of it. In a log too short for a spare, zeros are the work
    of a file system that recorded a new length before the data, and count.
    """
    with (run / LOG_NAME).open("rb") as file:
        file.seek(end.offset)
        tail = file.read()
    return tail.rstrip(b"\0") if spare_bytes(end.offset) else tail


def spare_bytes(offset: int) -> int:
    """How many zeros a writer puts behind a log of ``offset`` bytes when it has to grow the file.

    An append into them changes no length, so that its sync spares the file system a transaction.
    A quarter of what there is, so that a short log stays short.
    """
    return min(offset // 4, MAX_SPARE_BYTES) // SPARE_STEP * SPARE_STEP


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise LogMissingError(path)
    return path


def _frames(run: Path, after: Position | None = None, look: Look = frames.walk) -> Iterator[Frame]:
    """Iterate over the valid frames up to the end or a torn tail."""
    return _verified(_existing(run / LOG_NAME), read_mark(run), after, look)


def _verified(
    path: Path, mark: Position | None, after: Position | None, look: Look
) -> Iterator[Frame]:
    # Unbuffered, because a frame is read again after a writer has finished it.
    with path.open("rb", buffering=0) as file:
        at = frames.start(path, file.read(frames.FILE_HEADER_BYTES))
        if mark and mark.salt != at.salt:
            reason = f"the file '{MARK_NAME}' beside it belongs to another log"
            raise LogCorruptError(path, 0, 0, reason)
        at = after or at
        for frame in _checked_frames(path, file, at, look):
            yield frame
            at = frame.end
    if mark and mark.offset > at.offset:
        reason = f"{mark.seq} records were acknowledged, and from here on they are gone or damaged"
        raise LogCorruptError(path, at.offset, at.seq, reason)


def _checked_frames(path: Path, file: FileIO, at: Position, look: Look) -> Iterator[Frame]:
    """Go through the file in windows; look closely at whatever is no valid frame within one."""
    frame: Frame | None
    while True:
        file.seek(at.offset)
        for frame in look(file.read(WINDOW_BYTES), at):
            yield frame
            at = frame.end
        frame = _next_frame(path, file, at)
        if frame is None:
            return
        yield frame
        at = frame.end


def _next_frame(path: Path, file: FileIO, at: Position) -> Frame | None:
    """Read the frame at ``at``; None at the end of the log, torn or not."""
    flaw = _frame_or_damage(file, at)
    if isinstance(flaw, Flaw):
        # A writer may have finished the frame between two reads of ours: look once more.
        flaw = _frame_or_damage(file, at)
    if isinstance(flaw, Flaw):
        raise LogCorruptError(path, at.offset, at.seq, flaw.reason)
    return flaw


def _frame_or_damage(file: FileIO, at: Position) -> Frame | Flaw | None:
    file.seek(at.offset)
    found = frames.take(at, file.read)
    if isinstance(found, Frame) or not found.tearable:
        return found
    file.seek(at.offset)
    return found if frames.has_later_frame(file.read(), at) else None


def read_mark(run: Path) -> Position | None:
    """How far the log was acknowledged, without a chain; None if that is not known."""
    with suppress(OSError):
        data = (run / MARK_NAME).read_bytes()
        fields = data[: _MARK_FIELDS.size]
        if len(data) == MARK_BYTES and data == mark_bytes(*_MARK_FIELDS.unpack(fields)):
            salt, seq, offset = _MARK_FIELDS.unpack(fields)
            return Position(salt, offset, seq, b"")
    return None


def mark_bytes(salt: bytes, n_records: int, n_bytes: int) -> bytes:
    """What the mark says of a log with this salt, durable this far."""
    fields = _MARK_FIELDS.pack(salt, n_records, n_bytes)
    return fields + struct.pack("<I", zlib.crc32(fields))
