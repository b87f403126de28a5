"""The log of a run: one writer appends durable batches of records, anyone reads them.

Files in the run folder:

    log/           the records, in segments; see `events.segments`
    acknowledged   how far the log was durable when an append last returned; see `events.watermark`
    LOCK           held by the writer
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock as Mutex
from typing import Self, TypeAlias

from events import codec, frames
from events.disk import DISK, Disk
from events.errors import LogError, LogWriteError
from events.frames import Position
from events.reading import (
    batches,
    read,
    read_all,
    read_head,
    read_start,
)
from events.segments import holds_log
from events.together import Call, Together
from events.vocabulary import AnyEvent, Record
from events.writer import LOCK_NAME, Writer

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
        self._clock = clock
        self._writer = Writer(run, disk)
        self.repaired = self._writer.repaired
        self._writing = Mutex()
        self._together = Together(self._append_all)

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
        return self._writer.at.chain.hex()

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
        if not self._writer.lock.held:
            reason = self._writer.failure or "a forked process does not inherit the log"
            raise self._error(reason)
        return self._together(entries)

    def check(self) -> None:
        """Do nothing, as long as this is the writer of the run and can write.

        Raises:
            LogWriteError: another one has taken over, or an earlier append failed.
        """
        self._writer.check()

    def close(self) -> None:
        """Release the log, without its spare; closing twice is harmless."""
        # In a forked child the parent's other threads will never release the mutex.
        with self._writing if self._writer.lock.held else nullcontext():
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

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
                calls[0].error = self._error(f"an event cannot be recorded ({e})")
        except LogError as e:
            for call in calls:
                call.error = e
        finally:
            for call in calls:
                if not call.is_done:
                    call.error = self._error("the append was interrupted")

    def _answer(self, calls: Sequence[_Append]) -> None:
        self._writer.make_ready()
        data, end, records = self._prepare([entry for call in calls for entry in call.given])
        self._writer.write(data, end)
        for call in calls:
            call.answer, records = records[: len(call.given)], records[len(call.given) :]

    def _prepare(self, entries: Sequence[Entry]) -> tuple[bytes, Position, tuple[Record, ...]]:
        """Validate and encode a batch, so that nothing unreadable is ever written."""
        now, at = self._clock(), self._writer.at
        try:
            body, records = codec.pack(
                [
                    Record(seq, now, e.actor, e.event, e.because)
                    for seq, e in enumerate(entries, start=at.seq)
                ]
            )
            data, end = frames.pack(at, body, len(entries), self._writer.lock.epoch)
        except ValueError as e:
            raise _UnrecordableError(str(e)) from e
        return data, end, records

    def _error(self, reason: str) -> LogWriteError:
        return LogWriteError(self._writer.path, reason)
