"""Go through the segments of a log and check what is there; beside a writer or not."""

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import NoReturn

from events import frames, segments
from events.errors import LogCorruptError, LogMissingError
from events.frames import Flaw, Frame, Position
from events.segments import Header, Seal, segment_path, segments_of
from events.watermark import MARK_NAME, read_mark

WINDOW_BYTES = 1 << 20

Look = Callable[[bytes, Position], Iterable[Frame]]


class Cursor:
    """A place in the log of a run that moves on as the log is read.

    Attributes:
        at: the end of what was read; all before it is as it was written.
        path: the segment there.
        header: of that segment.
        is_proven: whether the segment is sealed and was found to be what the seal says.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: its first segment is missing or damaged, or is not that of the mark.
        LogSchemaError: it has a format that is not known here.
    """

    at: Position
    header: Header

    def __init__(self, run: Path, after: Position | None = None) -> None:
        self._run = run
        self._known: list[int] = []
        self._mark = read_mark(run)
        self._enter(after.segment if after else 0, None)
        if self._mark and self._mark.salt != self.at.salt:
            reason = f"the file '{MARK_NAME}' of the run belongs to another log"
            raise LogCorruptError(self.path, 0, self.at.seq, reason)
        self.at = after or self.at

    def steps(self, look: Look = frames.walk) -> Iterator[Frame | Seal]:
        """Iterate over the frames and seals up to the end of the log or a torn tail.

        Args:
            look: finds the valid frames among bytes.

        Raises:
            LogCorruptError: damage that no crash can cause, raised at the place.
            LogSchemaError: a segment has a format that is not known here.
        """
        return self._steps(lambda: self._rest(look))

    def sealed_steps(self, look: Look = frames.walk) -> Iterator[Frame | Seal]:
        """As `steps`; a segment that is what its seal says is not checked frame by frame."""
        return self._steps(lambda: self._proven() or self._rest(look))

    def seals(self) -> Iterator[Seal]:
        """Iterate over the segments before the last one, by header and seal alone.

        The cursor is at the beginning of each one, and at last of the last one.

        Raises:
            LogError: as `steps`.
        """
        for later in segments_of(self._run)[1:]:
            with self.path.open("rb", buffering=0) as file:
                seal = _peek(file, self.at)
            if seal is None:
                self._refuse(f"its seal is missing or damaged, although record {later} follows")
            yield seal
            self._pass(seal, later)

    def _steps(self, here: Callable[[], Iterable[Frame | Seal]]) -> Iterator[Frame | Seal]:
        while True:
            seal = yield from self._moving(here())
            later = self._later()
            if later is None:
                break
            if seal is None:  # a writer may have sealed the segment between two looks
                seal = yield from self._moving(self._rest(frames.walk))
            if seal is None:
                self._refuse(f"the segment is damaged or cut off here: record {later} follows")
            self._pass(seal, later)
        if self._mark and self._mark.seq > self.at.seq:
            known = f"{self._mark.seq} records were acknowledged"
            self._refuse(f"{known}, and from here on they are gone or damaged")

    def _rest(self, look: Look) -> Iterator[Frame | Seal]:
        """Go on in windows, and look closely at whatever is no valid frame within one."""
        # Unbuffered, because a frame is read again after a writer has finished it.
        with self.path.open("rb", buffering=0) as file:
            while True:
                file.seek(self.at.offset)
                yield from look(file.read(WINDOW_BYTES), self.at)
                step = self._next(file)
                if step:
                    yield step
                if not isinstance(step, Frame):
                    return

    def _next(self, file: FileIO) -> Frame | Seal | None:
        """Read the frame or seal here; None at the end of the log, torn or not."""
        flaw = _step_or_damage(file, self.at)
        if isinstance(flaw, Flaw):
            # A writer may have finished the frame between two reads of ours: look once more.
            flaw = _step_or_damage(file, self.at)
        if isinstance(flaw, Flaw):
            self._refuse(flaw.reason)
        return flaw

    def _proven(self) -> Iterable[Frame | Seal] | None:
        """The steps of a sealed segment by their headers alone, if the file is as it was sealed."""
        if self.at.offset != segments.HEADER_BYTES:
            return None
        with self.path.open("rb", buffering=0) as file:
            seal = _peek(file, self.at)
            if seal is None:
                return None
            file.seek(0)
            data = file.read()
        digest = hashlib.sha256(memoryview(data)[: seal.start.offset]).digest()
        if digest != seal.contents.digest:
            return None
        self.is_proven = True
        return self._skimmed(data)

    def _skimmed(self, data: bytes) -> Iterator[Frame | Seal]:
        yield from frames.skim(data, self.at)
        seal = segments.take_seal(self.at, data[self.at.offset :])
        if isinstance(seal, Flaw):
            self._refuse(seal.reason)
        yield seal

    def _moving(self, steps: Iterable[Frame | Seal]) -> Generator[Frame | Seal, None, Seal | None]:
        """Move on with every step; return the seal if that is the last one."""
        step = None
        for step in steps:
            self.at = step.end
            yield step
        return step if isinstance(step, Seal) else None

    def _later(self) -> int | None:
        """The next segment that is there; the folder is listed again after the last known one."""
        if not self._known or self._known[-1] <= self.at.segment:
            self._known = segments_of(self._run)
        place = bisect_right(self._known, self.at.segment)
        return self._known[place] if place < len(self._known) else None

    def _pass(self, seal: Seal, later: int) -> None:
        """Enter the segment after a sealed one, which must be ``later``, the next that is there."""
        if later > seal.end.seq:
            path = segment_path(self._run, seal.end.seq)
            raise LogCorruptError(path, 0, seal.end.seq, "the segment is missing")
        if self.path.stat().st_size != seal.end.offset:
            self._refuse("bytes have been added after the seal")
        self._enter(later, seal.end)

    def _enter(self, first: int, before: Position | None) -> None:
        self.path = segment_path(self._run, first)
        if reason := self._unreadable(first):
            raise LogCorruptError(self.path, 0, first, reason)
        with self.path.open("rb") as file:
            data = file.read(segments.HEADER_BYTES)
        self.header, self.at = segments.take_header(self.path, data, before)
        self.is_proven = False

    def _unreadable(self, first: int) -> str | None:
        """Why nobody should begin to read segment ``first``; None if nothing speaks against it."""
        if self.path.is_file():
            is_too_long = self.path.stat().st_size > segments.MAX_FILE_BYTES
            return "it is longer than any segment" if is_too_long else None
        there = segments_of(self._run)
        if not there:
            raise LogMissingError(self._run)
        if first in there:
            return "it is not a file"
        return f"the segment is missing, although record {there[0]} is there"

    def _refuse(self, reason: str) -> NoReturn:
        raise LogCorruptError(self.path, self.at.offset, self.at.seq, reason)


def _peek(file: FileIO, at: Position) -> Seal | None:
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - segments.SEAL_BYTES, 0))
    return segments.peek_seal(at, file.read(segments.SEAL_BYTES), size)


def _digest(file: FileIO, size: int) -> bytes:
    file.seek(0)
    return hashlib.sha256(file.read(size)).digest()


def _step_or_damage(file: FileIO, at: Position) -> Frame | Seal | Flaw | None:
    file.seek(at.offset)
    data = file.read(segments.SEAL_BYTES)
    found: Frame | Seal | Flaw
    if segments.is_seal(data, at.salt):
        found = segments.take_seal(at, data)
        if isinstance(found, Seal) and _digest(file, at.offset) != found.contents.digest:
            return Flaw("the seal is not that of the records before it", tearable=False)
        return found
    file.seek(at.offset)
    found = frames.take(at, file.read)
    if isinstance(found, Frame) or not found.tearable:
        return found
    file.seek(at.offset)
    rest = file.read()
    was_finished = frames.has_later_frame(rest, at) or segments.has_seal(rest, at)
    return found if was_finished else None
