"""The log of a run: one writer appends durable batches of records, anyone reads them.

Files in the run folder:

    events.log     the records, in the layout of `events.frames`
    acknowledged   how far the log was durable when an append last returned; written after the
                   log and never synced, so it may lag behind, and if it is unreadable it says
                   nothing. It tells a torn tail from a cut-off or damaged end.
    LOCK           held by the writer
"""

import errno
import json
import os
import platform
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from events import frames
from events.blobs import DISK, Blobs, Disk
from events.errors import (
    LogBusyError,
    LogCorruptError,
    LogMissingError,
    LogSchemaError,
    LogWriteError,
)
from events.frames import Flaw, Frame, Position
from events.vocabulary import AnyEvent, LogRepaired, Record

LOG_NAME = "events.log"
MARK_NAME = "acknowledged"
LOCK_NAME = "LOCK"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MARK_FIELDS = struct.Struct("<4sQQ")  # salt, records, bytes
_MARK = struct.Struct("<4sQQI")  # and their crc32


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

    def __init__(self, run: Path, clock: Callable[[], int], disk: Disk) -> None:
        self.repaired: LogRepaired | None = None
        self._path = run / LOG_NAME
        self._clock = clock
        self._disk = disk
        self._failure: str | None = None
        with ExitStack() as resources:
            self._lock = resources.enter_context(_Lock(run / LOCK_NAME))
            _create_files(run, disk)
            self._fd = _open_fd(self._path, resources)
            self._mark_fd = _open_fd(run / MARK_NAME, resources)
            self._at, last = _last_frame(run)
            self._size = os.fstat(self._fd).st_size
            if last and not _is_acknowledged(run, last.end):
                self._settle(last)
            if self._size > self._at.offset:
                self.repaired = self._keep_torn_tail(Blobs(run, disk))
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
            LogCorruptError: it is damaged other than by a crash; nothing was changed.
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
        self._at, self._size = end, end.offset
        self._acknowledge()
        return records

    def close(self) -> None:
        """Release the log; closing twice is harmless."""
        self._failure = self._failure or "the log is closed"
        self._resources.close()

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
            body = frames.encode(
                [
                    Record(seq=seq, time_ns=now, actor=e.actor, because=e.because, event=e.event)
                    for seq, e in enumerate(entries, start=self._at.seq)
                ]
            )
            data, end = frames.pack(self._at, body, len(entries))
            records = frames.decode(self._path, Frame(self._at, end, body))
        except (ValueError, TypeError, OverflowError, LogSchemaError) as e:
            raise LogWriteError(self._path, f"an event cannot be recorded ({e})") from e
        return data, end, records

    def _write(self, data: bytes, end: Position) -> None:
        """Write a frame over whatever follows the last one, and make it durable."""
        self._failure = "an earlier append was interrupted"  # until this one is through
        try:
            self._disk.write_all(self._fd, data, self._at.offset)
            if self._size > end.offset:
                self._disk.truncate(self._fd, end.offset)
        except OSError as e:
            self._take_back()
            self._fail(f"the write failed ({e})", e)
        try:
            self._disk.sync(self._fd)
        except OSError as e:
            # The kernel may have dropped the pages: asking again could succeed and mean nothing.
            self._fail(f"the disk did not confirm the write ({e})", e)
        self._failure = None

    def _take_back(self) -> None:
        """Cut off a half-written frame, as well as the disk allows.

        What stays behind is a torn tail, which the next open reports; so a torn tail that is not
        reported yet is left there.
        """
        if self._size == self._at.offset:
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

    def _keep_torn_tail(self, blobs: Blobs) -> LogRepaired:
        torn = os.pread(self._fd, self._size - self._at.offset, self._at.offset)
        return LogRepaired(offset=self._at.offset, n_bytes=len(torn), sha=blobs.put(torn))

    def _acknowledge(self) -> None:
        """Note how far the log is durable; advisory, so a failure to write it is none."""
        fields = _MARK_FIELDS.pack(self._at.salt, self._at.seq, self._at.offset)
        with suppress(OSError):
            self._disk.write(self._mark_fd, fields + _crc(fields), 0)


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
    return (record for frame in _frames(run) for record in frames.decode(path, frame))


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
    return ((frame, frames.decode(path, frame)) for frame in _frames(run, after))


def read_all(run: Path) -> tuple[list[Record], str]:
    """Return the records of a run and the chain hash over these alone, hex.

    Beside a writer `read` and then `read_head` may see two lengths of one log.

    Raises:
        LogError: as `read`.
    """
    path, end = run / LOG_NAME, None
    records: list[Record] = []
    for frame in _frames(run):
        records += frames.decode(path, frame)
        end = frame.end
    return records, (end or read_start(run)).chain.hex()


def read_head(run: Path) -> str:
    """Return the chain hash over the whole log, hex, after verifying it.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage that no crash can cause.
        LogSchemaError: a format that is not known here.
    """
    return _last_frame(run)[0].chain.hex()


def _last_frame(run: Path) -> tuple[Position, Frame | None]:
    """Verify the log; return the position at its end and the frame before it, if any."""
    frame = None
    for frame in _frames(run):  # noqa: B007
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


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise LogMissingError(path)
    return path


def _frames(run: Path, after: Position | None = None) -> Iterator[Frame]:
    """Iterate over the valid frames up to the end or a torn tail."""
    return _checked_frames(_existing(run / LOG_NAME), _read_mark(run), after)


def _checked_frames(path: Path, mark: Position | None, after: Position | None) -> Iterator[Frame]:
    # Unbuffered, because a frame is read again after a writer has finished it.
    with path.open("rb", buffering=0) as file:
        at = frames.start(path, file.read(frames.FILE_HEADER_BYTES))
        if mark and mark.salt != at.salt:
            reason = f"the file '{MARK_NAME}' beside it belongs to another log"
            raise LogCorruptError(path, 0, 0, reason)
        at = after or at
        while frame := _next_frame(path, file, at):
            yield frame
            at = frame.end
    if mark and mark.offset > at.offset:
        reason = f"{mark.seq} records were acknowledged, and from here on they are gone or damaged"
        raise LogCorruptError(path, at.offset, at.seq, reason)


def _next_frame(path: Path, file: BinaryIO, at: Position) -> Frame | None:
    """Read the frame at ``at``; None at the end of the log, torn or not."""
    flaw = _frame_or_damage(file, at)
    if isinstance(flaw, Flaw):
        # A writer may have finished the frame between two reads of ours: look once more.
        flaw = _frame_or_damage(file, at)
    if isinstance(flaw, Flaw):
        raise LogCorruptError(path, at.offset, at.seq, flaw.reason)
    return flaw


def _frame_or_damage(file: BinaryIO, at: Position) -> Frame | Flaw | None:
    file.seek(at.offset)
    found = frames.take(at, file.read)
    if isinstance(found, Frame) or not found.tearable:
        return found
    file.seek(at.offset)
    return found if frames.has_later_frame(file.read(), at) else None


def _read_mark(run: Path) -> Position | None:
    """How far the log was acknowledged; None if that is not known."""
    with suppress(OSError):
        data = (run / MARK_NAME).read_bytes()
        fields = data[: _MARK_FIELDS.size]
        if len(data) == _MARK.size and data == fields + _crc(fields):
            salt, seq, offset = _MARK_FIELDS.unpack(fields)
            return Position(salt, offset, seq, b"")
    return None


def _is_acknowledged(run: Path, end: Position) -> bool:
    mark = _read_mark(run)
    return mark is not None and mark.offset >= end.offset


def _crc(fields: bytes) -> bytes:
    return struct.pack("<I", zlib.crc32(fields))


def _create_files(run: Path, disk: Disk) -> None:
    """Create what the run folder lacks, with durable names.

    Raises:
        LogCorruptError: the log is gone, although records of it were acknowledged.
    """
    path, mark = run / LOG_NAME, run / MARK_NAME
    if not path.exists():
        if known := _read_mark(run):
            raise LogCorruptError(path, 0, 0, f"the file is gone, with {known.seq} records")
        disk.create(path, frames.file_header(os.urandom(frames.LOG_ID_BYTES)))
    if not mark.exists():
        disk.create(mark, bytes(_MARK.size))  # full size now, so that no disk is full later
    disk.sync_folder(run)
    disk.sync_folder(run.parent)


def _open_fd(path: Path, resources: ExitStack) -> int:
    fd = os.open(path, os.O_RDWR)
    resources.callback(os.close, fd)
    return fd


class _Lock:
    """An exclusive lock that ends with its process, whoever that process has forked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def held(self) -> bool:
        """Whether this very process holds it."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        import fcntl  # not everywhere, and readers do without

        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            owner = os.pread(self._fd, 4096, 0)
            self.drop()
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LogBusyError(self._path, _owner_name(owner)) from None
            raise
        _HELD.add(self)
        self._sign()
        return self

    def __exit__(self, *exc: object) -> None:
        _HELD.discard(self)
        self.drop()

    def drop(self) -> None:
        """Close this process's handle; an unlock would take the lock from the parent as well."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _sign(self) -> None:
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
        owner = {"pid": os.getpid(), "host": platform.node(), "boot": boot}
        with suppress(OSError):  # for people only
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(owner).encode(), 0)


def _owner_name(signature: bytes) -> str:
    """Who signed the lock, for people."""
    try:
        owner = json.loads(signature)
        return f"process {owner['pid']} on {owner['host']} (boot {owner['boot']})"
    except (ValueError, KeyError, TypeError):
        return "a process that has not given its name yet"


_HELD: set[_Lock] = set()
"""Locks of this process; a forked child lets go of them at once."""


def _drop_all() -> None:
    for lock in _HELD:
        lock.drop()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
