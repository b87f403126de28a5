"""Real power cuts: a file system of its own is shut down under a writer, and mounted again.

The shutdown that ext4 offers for such tests drops what it has in memory, journal included, at
once. What it had already given to its device stays, so a device that loses its cache is not shown.
Asked for with ``--cuts``; needs root, loop devices and mkfs.ext4.
"""

import fcntl
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from events.disk import Disk
from events.errors import LogError
from events.log import read
from tests.support.child import Child
from tests.support.crash_disk import QUICK
from tests.support.writing import acknowledged, check, small_files, write_on

IMAGE_BYTES = 1 << 25
MAX_LIFE_S = 0.3
N_CONTROLS = 5
SHUTDOWN = 0x8004587D
WITHOUT_JOURNAL = struct.pack("I", 2)


@pytest.fixture
def image(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """A file with an empty file system."""
    if not pytestconfig.getoption("--cuts"):
        pytest.skip("power cuts are made with --cuts N")
    path = tmp_path / "image"
    path.touch()
    os.truncate(path, IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", str(path)], check=True)
    (tmp_path / "disk").mkdir()
    return path


@contextmanager
def mounted(image: Path) -> Iterator[Path]:
    """The file system is there meanwhile."""
    folder = image.with_name("disk")
    subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def cut(image: Path, life_s: float, disk: Disk) -> dict[int, str]:
    """Let a writer live for a while, cut the power; return what was acknowledged."""
    with mounted(image) as folder:
        writer = Child(partial(write_on, folder / "run", disk=disk)).go()
        first = writer.lines.readline().decode().strip()
        time.sleep(life_s)
        fd = os.open(folder, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, WITHOUT_JOURNAL)
        os.close(fd)
        writer.send(signal.SIGKILL)
        return acknowledged([first, *writer.end()])


@pytest.mark.timeout(3600)
def test_a_power_cut_loses_nothing_acknowledged(
    image: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on from whatever the file system has after it."""
    small_files(monkeypatch)
    rng, known = np.random.default_rng(4), dict[int, str]()
    for _ in range(pytestconfig.getoption("--cuts")):
        known |= cut(image, rng.uniform(0, MAX_LIFE_S), Disk())
        with mounted(image) as folder:
            check(folder / "run", known)


def test_without_syncs_a_power_cut_is_seen_to_lose_what_was_acknowledged(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test of power cuts would show nothing."""
    small_files(monkeypatch)
    n_lost = 0
    for k in range(N_CONTROLS):
        known = cut(image, MAX_LIFE_S, QUICK)
        with mounted(image) as folder:
            try:
                n_lost += len(list(read(folder / "run"))) <= max(known)
            except LogError:
                n_lost += 1
            (folder / "run").rename(folder / f"run {k}")

    assert n_lost == N_CONTROLS
