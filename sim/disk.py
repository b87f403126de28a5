"""A disk that fills up, tears the last write of a killed process and forgets in a power cut."""

import errno
import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from events.disk import Disk

Manner = Literal["kill", "torn", "power"]


class Killed(BaseException):
    """The simulated process is dead."""


@dataclass
class _Unsynced:
    """What a power cut would take back of one file."""

    size: int
    overwritten: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Bytes that were there before, by offset and length of the write."""


class SimulatedDisk(Disk):
    """Real files without syncs; what was not synced is remembered, to be forgotten on demand.

    Args:
        now: seconds of the simulated world.
        seed: of the random bytes that new files are named by.

    Attributes:
        full_until_s: until then every write fails for want of space.
        is_dead: whether the process is gone; what it still tries to write does not happen.
    """

    def __init__(self, now: Callable[[], float], seed: int) -> None:
        self.full_until_s = 0.0
        self.is_dead = False
        self._now, self._seed = now, seed
        self._n_drawn = 0
        self._n_left = 0
        self._part = 0.0
        self._manner: Manner | None = None
        self._unsynced: dict[str, _Unsynced] = {}

    def kill_after(self, n_operations: float, manner: Manner) -> None:
        """Let the process die within an operation to come, or at once if it is to be before now.

        Args:
            n_operations: whole operations from now on; the fraction is the part of a torn write
                that is done.
            manner: whether only a write will do, or what was not synced is forgotten.

        Raises:
            Killed: at once.
        """
        self._n_left, self._part = math.floor(n_operations), n_operations % 1
        self._manner = manner
        if n_operations < 0 and manner != "torn":
            self._die()

    def revive(self) -> None:
        """A new process takes over."""
        self.is_dead, self._manner = False, None

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, die over it, or find the disk full."""
        self._live()
        path = _path(fd)
        self._remember(path, fd, offset, len(data))
        if self._manner == "torn" and self._n_left <= 0:
            os.pwrite(fd, data[: int(self._part * len(data))], offset)
        self._die(tears=True)
        if self._now() < self.full_until_s:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, or die over it."""
        self._live()
        before = os.fstat(fd).st_size
        self._remember(_path(fd), fd, size, max(0, before - size))
        self._die()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """From here on a power cut leaves what was written, or die before."""
        self._live()
        self._die()
        self._unsynced.pop(_path(fd), None)

    def random(self, n_bytes: int) -> bytes:
        """Return bytes that follow from the seed and the number of calls."""
        self._n_drawn += 1
        return hashlib.shake_256(f"{self._n_drawn} of {self._seed}".encode()).digest(n_bytes)

    def sync_folder(self, folder: Path) -> None:
        """Die, or do nothing: names are not what this disk loses."""
        self._live()
        self._die()

    def _live(self) -> None:
        if self.is_dead:
            raise OSError(errno.EIO, "the process is dead")

    def _die(self, *, tears: bool = False) -> None:
        """Count one operation, and end the process if it is the last one."""
        self._n_left -= 1
        if self._manner is None or self._n_left >= 0 or (self._manner == "torn" and not tears):
            return
        self.is_dead = True
        if self._manner == "power":
            self._forget()
        raise Killed

    def _remember(self, path: str, fd: int, offset: int, n_bytes: int) -> None:
        known = self._unsynced.setdefault(path, _Unsynced(os.fstat(fd).st_size))
        if (offset, n_bytes) not in known.overwritten:
            known.overwritten[offset, n_bytes] = os.pread(fd, n_bytes, offset)

    def _forget(self) -> None:
        """Take back what was not synced, the last write first."""
        for path, was in self._unsynced.items():
            if not os.path.exists(path):
                continue
            with open(path, "r+b") as file:
                for (offset, _), data in reversed(was.overwritten.items()):
                    os.pwrite(file.fileno(), data, offset)
                os.ftruncate(file.fileno(), was.size)
        self._unsynced.clear()


def _path(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")
