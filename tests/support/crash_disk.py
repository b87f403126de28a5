"""A disk that notes what is written and synced, and every state that a power cut may leave."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from events.disk import Disk
from events.log import LOG_NAME, MARK_NAME

SECTOR_BYTES = 512
MAX_STATES = 1 << 13
"""Of one crash point; where there are more, that many are drawn."""


class QuickDisk(Disk):
    """A disk that leaves durability to chance, for what is about bytes alone."""

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_folder(self, folder: Path) -> None:
        """Do nothing."""


QUICK = QuickDisk()


@dataclass
class Platter:
    """One file as a disk may have it: what is durable, and what it held after each write since."""

    images: list[bytes]
    """The durable one first."""

    def write(self, data: bytes, offset: int) -> None:
        """Take an unsynced write."""
        old = self.images[-1].ljust(offset, b"\0")
        self.images.append(old[:offset] + data + old[offset + len(data) :])

    def truncate(self, size: int) -> None:
        """Take an unsynced change of length."""
        self.images.append(self.images[-1][:size].ljust(size, b"\0"))

    def sync(self) -> None:
        """Make the last image the durable one."""
        self.images = self.images[-1:]

    def states(self, rng: np.random.Generator) -> set[bytes]:
        """Every length that the file had, with every mix of old and new sectors."""
        return set().union(*(self._mixes(len(image), rng) for image in self.images))

    def _mixes(self, size: int, rng: np.random.Generator) -> Iterator[bytes]:
        padded = [image[:size].ljust(size, b"\0") for image in self.images]
        sectors = [
            list(dict.fromkeys(image[k : k + SECTOR_BYTES] for image in padded))
            for k in range(0, size, SECTOR_BYTES)
        ]
        if math.prod(map(len, sectors)) <= MAX_STATES:
            yield from map(b"".join, itertools.product(*sectors))
            return
        yield from padded
        for _ in range(MAX_STATES):
            yield b"".join(versions[rng.integers(len(versions))] for versions in sectors)


@dataclass
class Moment:
    """A point at which the power may fail."""

    log: Platter
    marks: list[bytes]
    """All that the mark ever held, the last one last."""
    n_safe: int
    """Records whose append had returned."""
    n_tried: int
    """Those and the ones of the append under way."""


@dataclass
class CrashDisk(Disk):
    """Writes through to a run folder and notes every moment between two operations.

    Attributes:
        run: the folder, with the files of a log in it.
        moments: what was noted.
        n_safe: to be kept up by whoever appends, as in `Moment`.
        n_tried: the same.
        lies: whether a sync says that it is done and does nothing.
    """

    run: Path
    n_safe: int = 0
    n_tried: int = 0
    lies: bool = False
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reload()

    def reload(self) -> None:
        """Take the files as they are for durable."""
        self._log = Platter([(self.run / LOG_NAME).read_bytes()])
        self._marks = [(self.run / MARK_NAME).read_bytes()]

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, and note it."""
        name = _name(fd)
        if name == LOG_NAME:
            self._log.write(data, offset)
        elif name == MARK_NAME:
            self._marks.append(data)
        self._note()
        return super().write(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, and note it."""
        self._log.truncate(size)
        self._note()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """Take what was written before for durable; a reader of the folder sees it anyway."""
        if _name(fd) == LOG_NAME and not self.lies:
            self._log.sync()
        self._note()

    def sync_folder(self, folder: Path) -> None:
        """Do nothing: names are not what this disk loses."""

    def _note(self) -> None:
        log, marks = Platter(list(self._log.images)), self._marks[-2:]
        self.moments.append(Moment(log, marks, self.n_safe, self.n_tried))


def _name(fd: int) -> str:
    return Path(f"/proc/self/fd/{fd}").readlink().name
