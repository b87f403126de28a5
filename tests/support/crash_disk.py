"""A disk that notes what is written and synced, and every state that a power cut may leave."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from events.disk import Disk
from events.segments import segment_name, segment_path, segments_of
from events.watermark import MARK_NAME

SECTOR_BYTES = 512
MAX_STATES = 5_200
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

    def states(self, rng: np.random.Generator, most: int = MAX_STATES) -> set[bytes]:
        """Every length that the file had, with every mix of old and new sectors, up to ``most``."""
        return set().union(*(self._mixes(len(image), rng, most) for image in self.images))

    def _mixes(self, size: int, rng: np.random.Generator, most: int) -> Iterator[bytes]:
        padded = [image[:size].ljust(size, b"\0") for image in self.images]
        sectors = (
            tuple(dict.fromkeys(image[k : k + SECTOR_BYTES] for image in padded))
            for k in range(0, size, SECTOR_BYTES)
        )
        parts = list(_settled(sectors))
        if math.prod(map(len, parts)) <= most:
            yield from map(b"".join, itertools.product(*parts))
            return
        yield from padded
        drawn = rng.integers([len(versions) for versions in parts], size=(most, len(parts)))
        for choice in drawn.tolist():
            yield b"".join(versions[k] for versions, k in zip(parts, choice, strict=True))


def _settled(sectors: Iterable[tuple[bytes, ...]]) -> Iterator[tuple[bytes, ...]]:
    """Join neighbours that have one version each: they need no choice."""
    for n_versions, some in itertools.groupby(sectors, key=len):
        same = list(some)
        yield from [(b"".join(one for (one,) in same),)] if n_versions == 1 else same


@dataclass
class Moment:
    """A point at which the power may fail."""

    sealed: dict[str, bytes]
    """The segments before the last one."""
    name: str
    """Of the last segment."""
    log: Platter
    """The last segment."""
    born: tuple[str, bytes] | None
    """A segment after it whose name is not durable yet."""
    marks: list[bytes]
    """All that the mark ever held, the last one last."""
    n_safe: int
    """Records whose append had returned."""
    n_tried: int
    """Those and the ones of the append under way."""

    def segments(
        self, rng: np.random.Generator, most: int = MAX_STATES
    ) -> Iterator[dict[str, bytes]]:
        """Every state of the folder of segments, up to ``most`` of each length of the last one."""
        for log in sorted(self.log.states(rng, most)):
            yield {**self.sealed, self.name: log}
            if self.born:
                yield {**self.sealed, self.name: log, self.born[0]: self.born[1]}


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
        *sealed, last = segments_of(self.run)
        files = {n: segment_path(self.run, n).read_bytes() for n in (*sealed, last)}
        self._sealed = {segment_name(n): files[n] for n in sealed}
        self._name, self._log = segment_name(last), Platter([files[last]])
        self._born: tuple[str, bytes] | None = None
        self._marks = [(self.run / MARK_NAME).read_bytes()]

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, and note it."""
        name = _name(fd)
        if name == self._name:
            self._log.write(data, offset)
        elif name == MARK_NAME:
            self._marks.append(data)
        self._note()
        return super().write(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, and note it."""
        if _name(fd) == self._name:
            self._log.truncate(size)
        self._note()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """Take what was written before for durable; a reader of the folder sees it anyway."""
        if _name(fd) == self._name and not self.lies:
            self._log.sync()
        self._note()

    def create(self, path: Path, data: bytes) -> None:
        """Create, and note that the name may be lost."""
        super().create(path, data)
        if path.name > self._name and path.suffix == ".seg":
            self._born = (path.name, data)
        self._note()

    def sync_folder(self, folder: Path) -> None:
        """Go on in the new segment, if there is one: its name is durable now."""
        if self._born and folder == segment_path(self.run, 0).parent:
            self._sealed[self._name] = self._log.images[-1]
            self._name, self._log = self._born[0], Platter([self._born[1]])
            self._born = None
        self._note()

    def _note(self) -> None:
        log, marks = Platter(list(self._log.images)), self._marks[-2:]
        state = (dict(self._sealed), self._name, log, self._born, marks)
        self.moments.append(Moment(*state, self.n_safe, self.n_tried))


def _name(fd: int) -> str:
    return Path(f"/proc/self/fd/{fd}").readlink().name
