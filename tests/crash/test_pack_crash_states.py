"""Every state in which a power cut may leave the packs: no blob whose put returned is lost.

A disk notes each write, cut, new file and sync. Between any two of them the power may fail; then
any mix of old and new 512-byte sectors of what was not synced is on the disk, with the old or the
new length, and a new file whose folder was not synced may be gone.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from events import pack_writer
from events.blobs import Blobs
from events.disk import Disk
from events.errors import BlobCorruptError, BlobMissingError
from tests.support.crash_disk import QUICK, Platter

MIN_STATES = 10_000
MAX_IMAGES = 1 << 13
"""Of one pack at one moment."""


@dataclass
class Moment:
    """A point at which the power may fail."""

    packs: dict[str, Platter]
    loose: frozenset[str]
    """Those of them whose names are not durable."""
    n_safe: int
    """Blobs whose put had returned."""


@dataclass
class PackDisk(Disk):
    """Writes through to the packs of a run and notes every moment between two operations."""

    n_safe: int = 0
    moments: list[Moment] = field(default_factory=list)
    packs: dict[str, Platter] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, and note it."""
        self._of(fd).write(data, offset)
        self._note()
        return super().write(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, and note it."""
        self._of(fd).truncate(size)
        self._note()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """Take what was written before for durable."""
        self._of(fd).sync()
        self._note()

    def create(self, path: Path, data: bytes) -> None:
        """Put a whole file there, whose name is not durable yet."""
        path.write_bytes(data)
        self.packs[path.name] = Platter([data])
        self.loose |= {path.name}
        self._note()

    def sync_folder(self, folder: Path) -> None:
        """Take the names for durable."""
        if folder.name == "blobs":
            self.loose = frozenset()
        self._note()

    def _of(self, fd: int) -> Platter:
        return self.packs[Path(f"/proc/self/fd/{fd}").readlink().name]

    def _note(self) -> None:
        packs = {name: Platter(list(pack.images)) for name, pack in self.packs.items()}
        self.moments.append(Moment(packs, self.loose, self.n_safe))


def data(k: int, n_bytes: int) -> bytes:
    """Bytes that cannot be compressed, others for every number."""
    return np.random.default_rng(k).bytes(n_bytes)


Puts = list[list[bytes]]

GROWN: Puts = [[data(1, 10)], [data(2, 1900), data(3, 600), data(4, 3000)]]
"""A small group and a large one."""
SPARED: Puts = [[data(5, 4500)], [data(6, 300), b"", data(7, 200)], [data(8, 7000), data(9, 500)]]
"""Groups make a spare, go into it and over its end."""
TURNED: Puts = [[data(k, 2500)] for k in range(10, 14)]
"""Packs are full and others begin."""


def put(run: Path, disk: PackDisk, groups: Puts) -> None:
    """Put two groups by one process each, and tell the disk what is safe."""
    for k in range(0, len(groups), 2):
        blobs = Blobs(run, disk)
        for group in groups[k : k + 2]:
            blobs.put_all(group)
            disk.n_safe += len(group)


def states(disk: PackDisk) -> Iterator[tuple[dict[str, bytes], int]]:
    """Every state of every moment, and how many blobs must be there."""
    rng = np.random.default_rng(5)
    for moment in disk.moments:
        durable = {name: pack.images[-1] for name, pack in moment.packs.items()}
        for name, pack in moment.packs.items():
            for image in pack.states(rng, MAX_IMAGES):
                yield {**durable, name: image}, moment.n_safe
        yield {n: image for n, image in durable.items() if n not in moment.loose}, moment.n_safe


def lay(run: Path, packs: dict[str, bytes]) -> None:
    """Leave these packs and no others in a run."""
    root = run / "blobs"
    root.mkdir(parents=True, exist_ok=True)
    for path in root.iterdir():
        if path.name not in packs:
            path.unlink()
    for name, image in packs.items():
        with (root / name).open("r+b" if (root / name).exists() else "w+b", buffering=0) as file:
            file.write(image)
            file.truncate()


def check(run: Path, every: list[bytes], names: tuple[str, ...], n_safe: int) -> None:
    """A reader finds what was safe and nothing wrong; a new writer finishes the work."""
    reader = Blobs(run)
    for k, (name, raw) in enumerate(zip(names, every, strict=True)):
        if k < n_safe:
            assert reader.get(name) == raw
        else:
            with suppress(BlobMissingError, BlobCorruptError):
                assert reader.get(name) == raw

    writer = Blobs(run, QUICK)
    assert writer.put_all(every) == names
    assert [reader.get(name) for name in names] == every
    assert not any("to the end" in flaw.reason for flaw in writer.flaws())


@pytest.mark.timeout(600)
def test_a_power_cut_at_any_moment_loses_no_blob(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a put returned is there; a torn tail is cut; and the next writer can go on."""
    monkeypatch.setattr("events.disk.SPARE_STEP", 1024)
    monkeypatch.setattr(pack_writer, "MAX_UNSYNCED_BYTES", 6144)
    n_states = 0
    for n, (groups, max_bytes) in enumerate(((GROWN, 1 << 20), (SPARED, 1 << 20), (TURNED, 4000))):
        monkeypatch.setattr(pack_writer, "MAX_PACK_BYTES", max_bytes)
        disk, every = PackDisk(), [raw for group in groups for raw in group]
        put(folder / f"run {n}", disk, groups)
        names = Blobs(folder / f"names {n}", QUICK).put_all(every)
        seen: dict[tuple[bytes, ...], int] = {}
        for packs, n_safe in states(disk):
            key = tuple(packs[name] for name in sorted(packs))
            if seen.get(key, -1) < n_safe:
                lay(folder / f"cut {n}", packs)
                check(folder / f"cut {n}", every, names, n_safe)
                seen[key] = n_safe
        n_states += len(seen)

    assert n_states >= MIN_STATES
