"""Two campaigns on one machine take turns at the device."""

import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from actors.lease import lease

CONTEXT = multiprocessing.get_context("spawn")


def hold(path: Path, held: Event, done: Event) -> None:
    """Hold the device until told to stop."""
    with lease(path):
        held.set()
        done.wait(30)


def test_the_second_one_waits_for_the_first(tmp_path: Path) -> None:
    """The lease is exclusive, and each holder has a newer token than the last."""
    path, held, done = tmp_path / "d" / "device.lease", CONTEXT.Event(), CONTEXT.Event()
    with lease(path) as first:
        pass
    other = CONTEXT.Process(target=hold, args=(path, held, done))
    other.start()
    assert held.wait(30)
    began = time.monotonic()
    releaser = CONTEXT.Process(target=release_after, args=(0.5, done))
    releaser.start()

    with lease(path) as second:
        waited_s = time.monotonic() - began

    other.join(30)
    releaser.join(30)
    assert waited_s >= 0.4
    assert second == first + 2


def release_after(seconds: float, done: Event) -> None:
    time.sleep(seconds)
    done.set()


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    """The lock is the kernel's: kill -9 of its holder frees the device."""
    path, held, never = tmp_path / "device.lease", CONTEXT.Event(), CONTEXT.Event()
    other = CONTEXT.Process(target=hold, args=(path, held, never))
    other.start()
    assert held.wait(30)
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    other.join(30)

    with lease(path) as token:
        assert token == 2


def test_a_damaged_lease_file_starts_the_tokens_again(tmp_path: Path) -> None:
    """The file holds nothing that the record needs."""
    path = tmp_path / "device.lease"
    path.write_bytes(b"\xff\x00 nonsense")

    with lease(path) as token:
        assert token == 1
