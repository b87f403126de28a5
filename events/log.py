"""The log of a run: one writer appends durable batches of records, anyone reads them.

Files in the run folder:

    events.log     the records, in the layout of `events.frames`
    acknowledged   how far the log was durable when an append last returned; written after the
                   log and never synced, so it may lag behind, and if it is unreadable it says
                   nothing. It tells a torn tail from a cut-off or damaged end.
    LOCK           held by the writer
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from events import codec, frames
from events.blobs import Blobs
from events.disk import DISK, Disk
from events.errors import LogCorruptError, LogSchemaError, LogWriteError
from events.frames import Frame, Position
from events.lock import Lock
from events.reading import (
    LOG_NAME,
    MARK_BYTES,
    MARK_NAME,
    batches,
    last_frame,
    mark_bytes,
    read,
    read_all,
    read_head,
    read_mark,
    read_start,
    spare_bytes,
    torn_tail,
)
from events.vocabulary import AnyEvent, LogRepaired, Record

__all__ = [
    "LOCK_NAME",
    "LOG_NAME",
    "MARK_NAME",
    "Entry",
    "EventLog",
    "batches",
    "read",
    "read_all",
    "read_head",
    "read_start",
]

LOCK_NAME = "LOCK"


@dataclass(frozen=True)
class Entry:
    """An event on its way into the log, which adds the number and the time."""

    event: AnyEvent
    actor: str
    because: tuple[int, ...] = ()


class EventLog:
    """The log of one run, open for writing by one thread of one process.

    Attributes:
        repaired: what the caller must append first if a crash tore the end of the log, else
            None. The torn bytes are a blob already; the first append replaces them in the file,
            so that a crash before it loses no report.
    """

    def __init__(
        self, run: Path, clock: Callable[[], int], disk: Disk, entropy: Callable[[int], bytes]
    ) -> None:
        self.repaired: LogRepaired | None = None
        self._path = run / LOG_NAME
        self._clock = clock
        self._disk = disk
        self._failure: str | None = None
        with ExitStack() as resources:
            self._lock = resources.enter_context(Lock(run / LOCK_NAME))
            _create_files(run, disk, entropy)
            self._fd = _open_fd(self._path, resources)
            self._mark_fd = _open_fd(run / MARK_NAME, resources)
            self._at, last = last_frame(run)
            self._size = os.fstat(self._fd).st_size
            if last and not _is_acknowledged(run, last.end):
                self._settle(last)
            if self._size > self._at.offset and (torn := torn_tail(run, self._at)):
                sha = Blobs(run, disk).put(torn)
                self.repaired = LogRepaired(offset=self._at.offset, n_bytes=len(torn), sha=sha)
            self._torn = self.repaired is not None
            self._resources = resources.pop_all()

    @classmethod
    def open(
        cls,
        run: Path,
        clock: Callable[[], int],
        disk: Disk = DISK,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> "EventLog":
        """Open the log of a run for writing; start one if the folder has none.

        Args:
            run: the run folder, created if absent.
            clock: returns the UTC time in ns.
            disk: the file operations to use.
            entropy: returns so many random bytes, for the id of a new log.

        Raises:
            LogBusyError: another writer has it.
            LogCorruptError: it is damaged other than by a crash; nothing was changed.
            LogSchemaError: it has a format that is not known here.
            LogWriteError: the disk is full or failing.
        """
        try:
            run.mkdir(parents=True, exist_ok=True)
            return cls(run, clock, disk, entropy)
        except OSError as e:
            raise LogWriteError(run, f"the log cannot be opened for writing ({e})") from e

    @property
    def head(self) -> str:
        """Chain hash of everything appended so far, hex."""
        return self._at.chain.hex()

    def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append a batch: all of it is durable on return, or none of it is in the log.

        Returns:
            The records exactly as a reader will get them.

        Raises:
            LogWriteError: an entry cannot be recorded (the log goes on), or the disk is full or
                failing (this and every later append fails; what was acknowledged is safe).
        """
        if not entries:
            return ()
        self._check_usable()
        data, end, records = self._prepare(entries)
        self._write(data, end)
        self._at = end
        self._acknowledge()
        return records

    def close(self) -> None:
        """Release the log, without its spare; closing twice is harmless."""
        with self._resources:
            if self._failure is None and self._lock.held:
                self._take_back()
            self._failure = self._failure or "the log is closed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _check_usable(self) -> None:
        if self._failure:
            raise LogWriteError(self._path, self._failure)
        if not self._lock.held:
            raise LogWriteError(self._path, "a forked process does not inherit the log")

    def _prepare(self, entries: Sequence[Entry]) -> tuple[bytes, Position, tuple[Record, ...]]:
        """Encode a batch and read it back, so that nothing unreadable is ever written."""
        now = self._clock()
        try:
            body = codec.pack_body(
                [
                    codec.plain(seq, now, e.actor, e.because, e.event)
                    for seq, e in enumerate(entries, start=self._at.seq)
                ]
            )
            data, end = frames.pack(self._at, body, len(entries))
            records = codec.decode(self._path, Frame(self._at, end, body))
        except (ValueError, TypeError, OverflowError, LogSchemaError) as e:
            raise LogWriteError(self._path, f"an event cannot be recorded ({e})") from e
        return data, end, records

    def _write(self, data: bytes, end: Position) -> None:
        """Write a frame over whatever follows the last one, and make it durable."""
        self._failure = "an earlier append was interrupted"  # until this one is through
        try:
            self._put(data, end)
        except OSError as e:
            self._take_back()
            self._fail(f"the write failed ({e})", e)
        try:
            self._disk.sync(self._fd)
        except OSError as e:
            # The kernel may have dropped the pages: asking again could succeed and mean nothing.
            self._fail(f"the disk did not confirm the write ({e})", e)
        self._failure, self._torn = None, False

    def _put(self, data: bytes, end: Position) -> None:
        """Write a frame into the spare, or with a new spare, or in the place of a torn one."""
        if end.offset > self._size and not self._torn:
            data += bytes(spare_bytes(end.offset))
        self._disk.write_all(self._fd, data, self._at.offset)
        if self._torn and self._size > end.offset:
            self._disk.truncate(self._fd, end.offset)
            self._size = end.offset
        self._size = max(self._size, self._at.offset + len(data))

    def _take_back(self) -> None:
        """Cut off what follows the last frame, as well as the disk allows.

        That is the spare, or half a frame. If half a frame stays behind, it is a torn tail, which
        the next open reports; so a torn tail that is not reported yet is left there.
        """
        if not self._torn:
            with suppress(OSError):
                self._disk.truncate(self._fd, self._at.offset)

    def _fail(self, reason: str, cause: OSError) -> None:
        self._failure = f"an earlier append failed: {reason}"
        raise LogWriteError(self._path, reason) from cause

    def _settle(self, last: Frame) -> None:
        """Write an unacknowledged frame again: after a failed sync it may be in memory only."""
        data, _ = frames.pack(last.start, last.body, last.end.seq - last.start.seq)
        self._disk.write_all(self._fd, data, last.start.offset)
        self._disk.sync(self._fd)
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Note how far the log is durable; advisory, so a failure to write it is none."""
        data = mark_bytes(self._at.salt, self._at.seq, self._at.offset)
        with suppress(OSError):
            self._disk.write(self._mark_fd, data, 0)


def _is_acknowledged(run: Path, end: Position) -> bool:
    mark = read_mark(run)
    return mark is not None and mark.offset >= end.offset


def _create_files(run: Path, disk: Disk, entropy: Callable[[int], bytes]) -> None:
    """Create what the run folder lacks, with durable names.

    Raises:
        LogCorruptError: the log is gone, although records of it were acknowledged.
    """
    path, mark = run / LOG_NAME, run / MARK_NAME
    if not path.exists():
        if known := read_mark(run):
            raise LogCorruptError(path, 0, 0, f"the file is gone, with {known.seq} records")
        disk.create(path, frames.file_header(entropy(frames.LOG_ID_BYTES)))
    if not mark.exists():
        disk.create(mark, bytes(MARK_BYTES))  # full size now, so that no disk is full later
    disk.sync_folder(run)
    disk.sync_folder(run.parent)


def _open_fd(path: Path, resources: ExitStack) -> int:
    fd = os.open(path, os.O_RDWR)
    resources.callback(os.close, fd)
    return fd
