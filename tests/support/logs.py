"""Small logs for tests, and disks that fail as told."""

import os
from pathlib import Path

from events.disk import Disk
from events.log import Entry, EventLog, read
from events.segments import segment_path, segments_of
from events.vocabulary import RunInterrupted

NOW = 1_700_000_000_000_000_000


def clock() -> int:
    """Always the same time."""
    return NOW


def entry(text: str) -> Entry:
    """An event that says ``text``."""
    return Entry(RunInterrupted(reason=text), actor="director")


def last_segment(run: Path) -> Path:
    """The file that is being written."""
    return segment_path(run, segments_of(run)[-1])


def write(run: Path, *texts: str) -> list[int]:
    """Append one frame per text; return the offset at which each one ends."""
    ends = []
    with EventLog.open(run, clock) as log:
        for text in texts:
            log.append([entry(text)])
            ends.append(last_segment(run).stat().st_size)
    return ends


def texts(run: Path) -> list[str]:
    """What the events of a log say."""
    return [r.event.reason for r in read(run) if isinstance(r.event, RunInterrupted)]


class FaultyDisk(Disk):
    """A disk that fails as told, a number of operations from now."""

    def __init__(self) -> None:
        self.fail_write: OSError | None = None
        self.fail_sync: OSError | KeyboardInterrupt | None = None
        self.fail_truncate: OSError | None = None
        self.max_write: int | None = None
        self.taken = 0

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, or fail as told."""
        if self.fail_write and self.taken >= 1:
            raise self.fail_write
        limit = 7 if self.fail_write else self.max_write
        self.taken += 1
        return super().write(fd, data[:limit], offset)

    def sync(self, fd: int) -> None:
        """Sync, or fail as told."""
        if self.fail_sync:
            raise self.fail_sync
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, or fail as told."""
        if self.fail_truncate:
            raise self.fail_truncate
        super().truncate(fd, size)


def arm(disk: FaultyDisk, code: int) -> None:
    """Let the next write take 7 bytes and the one after it fail."""
    disk.taken = 0
    disk.fail_write = OSError(code, os.strerror(code))
