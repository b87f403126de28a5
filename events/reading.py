"""Read the log of a run, with or without a writer beside; see `events.log` for its files."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from events import codec, frames
from events.collecting import uncollected
from events.cursor import Cursor
from events.disk import MAX_SPARE_BYTES, spare
from events.errors import LogCorruptError
from events.frames import Frame, Position
from events.segments import Seal, segment_path
from events.vocabulary import Record

LEAST_SPARE_BYTES = MAX_SPARE_BYTES // 4
"""In a segment after the first."""


def read(run: Path) -> Iterator[Record]:
    """Iterate over the records of a run, with or without a writer beside.

    A sealed segment is verified by its hash, the chain of seals, and the numbering; the open one
    by every checksum and the hash chain as well. A torn tail ends the iteration: nothing in it was
    acknowledged.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage that no crash can cause, raised at the place.
        LogSchemaError: an event kind or a format that is not known here.
    """
    return _records(Cursor(run))


def batches(run: Path, after: Position | None = None) -> Iterator[tuple[Frame, tuple[Record, ...]]]:
    """Iterate over the batches of a run as they were appended, verifying every one of them.

    Args:
        run: the run folder.
        after: the end of a batch that was read before, to go on from there.

    Returns:
        Each batch's frame, which knows its place and the chain hash after it, and its records.

    Raises:
        LogError: as `read`.
    """
    cursor = Cursor(run, after)
    return (
        (step, codec.decode(cursor.path, step))
        for step in cursor.steps()
        if isinstance(step, Frame)
    )


def read_all(run: Path) -> tuple[list[Record], str]:
    """Return the records of a run and the chain hash over these alone, hex.

    Beside a writer `read` and then `read_head` may see two lengths of one log.

    Raises:
        LogError: as `read`.
    """
    cursor = Cursor(run)
    with uncollected():
        records = list(_records(cursor))
    return records, cursor.at.chain.hex()


def read_head(run: Path) -> str:
    """Return the chain hash over the whole log, hex, after verifying it.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage that no crash can cause.
        LogSchemaError: a format that is not known here.
    """
    cursor = Cursor(run)
    for _ in cursor.sealed_steps(frames.last):
        pass
    return cursor.at.chain.hex()


def read_start(run: Path) -> Position:
    """Return the position before the first batch.

    Raises:
        LogError: as `read`.
    """
    return Cursor(run).at


def read_end(run: Path) -> tuple[Cursor, Frame | Seal | None]:
    """Go to the end of the log as a writer does, which verifies the last segment alone.

    Of those before it, header and seal are checked, and that each follows on the one before.

    Returns:
        The cursor there, and the last frame or seal of the last segment, if any.

    Raises:
        LogError: as `read`.
    """
    cursor, last = Cursor(run), None
    deque(cursor.seals(), 0)
    for last in cursor.steps(frames.last):  # noqa: B007
        pass
    return cursor, last


def torn_tail(run: Path, end: Position) -> bytes:
    """Return what a crash left of a batch after ``end``, the end of the last whole one.

    The zeros of the spare are not part of it. In a log too short for a spare, zeros are the work
    of a file system that recorded a new length before the data, and count.
    """
    with segment_path(run, end.segment).open("rb") as file:
        file.seek(end.offset)
        tail = file.read()
    return tail.rstrip(b"\0") if spare_bytes(end) else tail


def spare_bytes(end: Position) -> int:
    """How many zeros a writer puts behind ``end`` when it has to grow the file."""
    return spare(end.offset, LEAST_SPARE_BYTES if end.segment else 0)


def _records(cursor: Cursor) -> Iterator[Record]:
    for step in cursor.sealed_steps():
        if isinstance(step, Frame):
            yield from _records_of(cursor, step)


def _records_of(cursor: Cursor, frame: Frame) -> tuple[Record, ...]:
    """The records of a frame; a sealed segment in our own vocabulary need not be validated."""
    if not cursor.is_proven or cursor.header.schema != codec.SCHEMA:
        return codec.decode(cursor.path, frame)
    try:
        return codec.trusted(frame.body)
    except ValueError as e:
        raise LogCorruptError(cursor.path, frame.start.offset, frame.start.seq, str(e)) from e
