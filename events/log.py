"""The log of a run: one writer appends durable batches of records, anyone reads them.

Files in the run folder:

    log/           the records, in segments; see `events.segments`
    acknowledged   how far the log was durable when an append last returned; see `events.watermark`
    LOCK           held by the writer
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock as Mutex
from typing import NoReturn, Self, TypeAlias

from events import codec, frames, segments
from events.blobs import Blobs
from events.disk import DISK, Disk
from events.errors import LogCorruptError, LogError, LogSchemaError, LogWriteError
from events.frames import Frame, Position
from events.lock import Lock
from events.reading import (
    batches,
    read,
    read_all,
    read_end,
    read_head,
    read_start,
    spare_bytes,
    torn_tail,
)
from events.sealing import read_back
from events.segments import Header, Seal, holds_log, segment_path
from events.together import Call, Together
from events.vocabulary import AnyEvent, LogRepaired, Record
from events.watermark import MARK_BYTES, MARK_NAME, mark_bytes, read_mark

__all__ = [
    "LOCK_NAME",
    "Entry",
    "EventLog",
    "batches",
    "holds_log",
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


_Append: TypeAlias = Call[Sequence[Entry], tuple[Record, ...]]


class _UnrecordableError(Exception):
    """Some event of a batch cannot be written down."""


class EventLog:
    """The log of one run, open for writing by the threads of one process.

    Attributes:
        repaired: what the caller must append first if a crash tore the end of the log, else
            None. The torn bytes are a blob already; the first append replaces them in the file,
            so that a crash before it loses no report.
    """

    def __init__(self, run: Path, clock: Callable[[], int], disk: Disk) -> None:
        self.repaired: LogRepaired | None = None
        self._run = run
        self._clock = clock
        self._disk = disk
        self._failure: str | None = None
        self._writing = Mutex()
        self._together = Together(self._append_all)
        with ExitStack() as resources:
            self._lock = resources.enter_context(Lock(run / LOCK_NAME))
            _create_files(run, disk)
            cursor, last = read_end(run)
            self._path, self._header, self._at = cursor.path, cursor.header, cursor.at
            self._lock.exceed(self._at.epoch)
            self._mark_fd = os.open(run / MARK_NAME, os.O_RDWR)
            resources.callback(os.close, self._mark_fd)
            self._fd = os.open(self._path, os.O_RDWR)
            resources.callback(lambda: os.close(self._fd))
            self._size = os.fstat(self._fd).st_size
            self._is_sealed = isinstance(last, Seal)
            if last and (self._is_sealed or not _is_acknowledged(run, last.end)):
                self._settle(last)
            self._find_torn_tail()
            self._resources = resources.pop_all()

    @classmethod
    def open(cls, run: Path, clock: Callable[[], int], disk: Disk = DISK) -> "EventLog":
        """Open the log of a run for writing; start one if the folder has none.

        Args:
            run: the run folder, created if absent.
            clock: returns the UTC time in ns.
            disk: the file operations to use.

        Raises:
            LogBusyError: another writer has it.
            LogCorruptError: it is damaged other than by a crash, as far as headers, seals and the
                last segment show; nothing was changed.
            LogSchemaError: it has a format that is not known here.
            LogWriteError: the disk is full or failing.
        """
        try:
            run.mkdir(parents=True, exist_ok=True)
            return cls(run, clock, disk)
        except OSError as e:
            raise LogWriteError(run, f"the log cannot be opened for writing ({e})") from e

    @property
    def head(self) -> str:
        """Chain hash of everything appended so far, hex."""
        return self._at.chain.hex()

    def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append a batch: all of it is durable on return, or none of it is in the log.

        Threads that call it while another one's batch is being written share the next write.

        Returns:
            The records exactly as a reader will get them.

        Raises:
            LogWriteError: an entry cannot be recorded (the log goes on), or the disk is full or
                failing or another writer has taken over (this and every later append fails; what
                was acknowledged is safe).
            LogCorruptError: the full segment cannot be read back.
        """
        if not entries:
            return ()
        if not self._lock.held:
            reason = self._failure or "a forked process does not inherit the log"
            raise LogWriteError(self._path, reason)
        return self._together(entries)

    def close(self) -> None:
        """Release the log, without its spare; closing twice is harmless."""
        # In a forked child the parent's other threads will never release the mutex.
        with self._writing if self._lock.held else nullcontext():
            if self._failure is None and self._lock.is_ours():
                self._take_back()
            self._failure = self._failure or "the log is closed"
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- a group of appends ----------------------------------------------------------------

    def _append_all(self, calls: Sequence[_Append]) -> None:
        """Append the batches of all calls as one frame, or one by one if that cannot be."""
        try:
            with self._writing:
                self._answer(calls)
        except _UnrecordableError as e:
            if len(calls) > 1:
                for call in calls:
                    self._append_all([call])
            else:
                calls[0].error = LogWriteError(self._path, f"an event cannot be recorded ({e})")
        except LogError as e:
            for call in calls:
                call.error = e
        finally:
            for call in calls:
                if not call.is_done:
                    call.error = LogWriteError(self._path, "the append was interrupted")

    def _answer(self, calls: Sequence[_Append]) -> None:
        self._check_usable()
        if self._is_sealed or self._header.schema != codec.SCHEMA or segments.is_full(self._at):
            self._turn_over()
        data, end, records = self._prepare([entry for call in calls for entry in call.given])
        self._write(data, end, is_last=self._torn)
        self._at = end
        self._acknowledge()
        for call in calls:
            call.answer, records = records[: len(call.given)], records[len(call.given) :]

    def _check_usable(self) -> None:
        if self._failure is None and not self._lock.is_ours():
            self._failure = "another writer has taken over"
        if self._failure:
            raise LogWriteError(self._path, self._failure)

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
            data, end = frames.pack(self._at, body, len(entries), self._lock.epoch)
            records = codec.decode(self._path, Frame(self._at, end, body))
        except (ValueError, TypeError, OverflowError, LogSchemaError) as e:
            raise _UnrecordableError(str(e)) from e
        return data, end, records

    def _write(self, data: bytes, end: Position, *, is_last: bool) -> None:
        """Write a frame or seal over whatever follows the last one, and make it durable."""
        self._failure = "an earlier append was interrupted"  # until this one is through
        try:
            self._put(data, end, is_last=is_last)
        except OSError as e:
            self._take_back()
            self._fail("the write failed", e)
        try:
            self._disk.sync(self._fd)
        except OSError as e:
            # The kernel may have dropped the pages: asking again could succeed and mean nothing.
            self._fail("the disk did not confirm the write", e)
        self._failure, self._torn = None, False

    def _put(self, data: bytes, end: Position, *, is_last: bool) -> None:
        """Write into the spare, or with a new spare, or as the last bytes of the file."""
        if end.offset > self._size and not is_last:
            data += bytes(spare_bytes(end))
        self._disk.write_all(self._fd, data, self._at.offset)
        self._size = max(self._size, self._at.offset + len(data))
        if is_last and self._size > end.offset:
            self._disk.truncate(self._fd, end.offset)
            self._size = end.offset

    def _take_back(self) -> None:
        """Cut off what follows the last frame, as well as the disk allows.

        That is the spare, or half a frame. If half a frame stays behind, it is a torn tail, which
        the next open reports; so a torn tail that is not reported yet is left there.
        """
        if not self._torn:
            with suppress(OSError):
                self._disk.truncate(self._fd, self._at.offset)

    def _fail(self, reason: str, cause: OSError) -> NoReturn:
        self._failure = f"an earlier append failed: {reason} ({cause})"
        raise LogWriteError(self._path, f"{reason} ({cause})") from cause

    def _acknowledge(self) -> None:
        """Note how far the log is durable; advisory, so a failure to write it is none."""
        with suppress(OSError):
            self._disk.write(self._mark_fd, mark_bytes(self._at), 0)

    # ---- segments --------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """Seal the segment, if that is not done, and begin the next one."""
        epoch = self._lock.epoch
        if self._at.seq == self._at.segment and not self._is_sealed:
            self._begin(self._header._replace(epoch=epoch, schema=codec.SCHEMA))  # it was empty
            return
        if not self._is_sealed:
            seal, end = segments.pack_seal(self._at, read_back(self._run, self._at), epoch)
            self._write(seal, end, is_last=True)
            self._at, self._is_sealed = end, True
        log_id, at = self._header.log_id, self._at
        self._begin(Header(log_id, at.seq, epoch, codec.SCHEMA, at.chain))

    def _begin(self, header: Header) -> None:
        """Create a segment, whole and durable, and go on there."""
        data, at = segments.pack_header(header)
        path = segment_path(self._run, header.first)
        self._failure = "an earlier append was interrupted"
        try:
            if self._size > self._at.offset:
                self._disk.truncate(self._fd, self._at.offset)
                self._disk.sync(self._fd)
            self._disk.create(path, data)
            self._disk.sync_folder(path.parent)
            fd = os.open(path, os.O_RDWR)
        except OSError as e:
            self._fail("the next segment cannot be created", e)
        os.close(self._fd)
        self._fd, self._path, self._header, self._at = fd, path, header, at
        self._size, self._is_sealed, self._torn, self._failure = len(data), False, False, None

    # ---- opening ---------------------------------------------------------------------------

    def _settle(self, last: Frame | Seal) -> None:
        """Write unacknowledged bytes again: after a failed sync they may be in memory only."""
        start, end = last.start.offset, last.end.offset
        self._disk.write_all(self._fd, os.pread(self._fd, end - start, start), start)
        self._disk.sync(self._fd)
        self._acknowledge()

    def _find_torn_tail(self) -> None:
        if self._size > self._at.offset and (torn := torn_tail(self._run, self._at)):
            sha = Blobs(self._run, self._disk).put(torn)
            self.repaired = LogRepaired(offset=self._at.offset, n_bytes=len(torn), sha=sha)
        self._torn = self.repaired is not None


def _is_acknowledged(run: Path, end: Position) -> bool:
    mark = read_mark(run)
    return mark is not None and mark.seq >= end.seq


def _create_files(run: Path, disk: Disk) -> None:
    """Create what the run folder lacks, with durable names.

    Raises:
        LogCorruptError: the log is gone, although records of it were acknowledged.
    """
    path, mark = segment_path(run, 0), run / MARK_NAME
    if not holds_log(run):
        if known := read_mark(run):
            raise LogCorruptError(path, 0, 0, f"the file is gone, with {known.seq} records")
        path.parent.mkdir(exist_ok=True)
        log_id = os.urandom(segments.LOG_ID_BYTES)
        disk.create(path, segments.pack_header(segments.new_header(log_id, codec.SCHEMA))[0])
    if not mark.exists():
        disk.create(mark, bytes(MARK_BYTES))  # full size now, so that no disk is full later
    for folder in (path.parent, run, run.parent):
        disk.sync_folder(folder)
