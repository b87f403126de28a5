"""Races for a run: one writer at a time, whatever happens to the others and to the lock file."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from events.disk import Disk
from events.errors import LogBusyError
from events.log import LOCK_NAME, EventLog, batches
from tests.support.child import Child, Say
from tests.support.logs import clock, entry, texts
from tests.support.writing import acknowledged, check, small_files, write_on

N_RACES = 10
N_RACERS = 12


def race(run: Path, start: Path, over: Path, say: Say) -> None:
    """Try to open a run once the race begins; whoever has it keeps it until the race is over."""
    wait_for(start)
    try:
        with EventLog.open(run, clock) as log:
            say("won")
            wait_for(over)
            log.append([entry(str(os.getpid()))])
    except LogBusyError as e:
        say(e.owner)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.0005)


@pytest.mark.parametrize("has_log", [False, True])
def test_of_many_who_open_a_run_at_once_one_has_it(tmp_path: Path, has_log: bool) -> None:
    """The others are told who, and the winner's log is whole, also if it had to be made first."""
    for k in range(N_RACES):
        run, start, over = (tmp_path / f"{name} {k}" for name in ("run", "start", "over"))
        if has_log:
            Child(partial(write_on, run, n_batches=1)).go().end()
        racers = [Child(partial(race, run, start, over)).go() for _ in range(N_RACERS)]
        start.touch()
        said = [racer.lines.readline().decode().strip() for racer in racers]
        over.touch()
        for racer in racers:
            racer.end()

        winner = racers[said.index("won")].pid
        assert said.count("won") == 1
        told = [owner for owner in said if owner != "won"]
        assert all(
            f"process {winner} on" in owner or "not given its name" in owner for owner in told
        )
        assert texts(run)[-1] == str(winner)
        assert len(list(batches(run))) == 1 + has_log


def test_the_run_of_a_dead_owner_is_taken_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock must not outlive its process by a moment, or every restart would have to wait."""
    small_files(monkeypatch)
    for _ in range(20):
        owner = Child(partial(write_on, tmp_path)).go()
        first = owner.lines.readline().decode()
        owner.send(signal.SIGKILL)
        check(tmp_path, acknowledged([first.strip(), *owner.end()]))


def leave_child(run: Path, say: Say) -> None:
    """Fork in the middle of writing, and be killed while the child lives on."""
    with EventLog.open(run, clock) as log:
        log.append([entry("parent")])
        heard, told = os.pipe()
        if os.fork():
            os.read(heard, 1)  # a child lets go of the lock before it does anything else
            os.kill(os.getpid(), signal.SIGKILL)
        say(str(os.getpid()))
        os.write(told, b".")
        signal.pause()


def test_a_child_that_outlives_the_writer_has_no_lock(tmp_path: Path) -> None:
    """It has the same file open; only by closing it does it let go."""
    owner = Child(partial(leave_child, tmp_path)).go()
    child = int(owner.lines.readline())
    os.waitpid(owner.pid, 0)
    try:
        with EventLog.open(tmp_path, clock) as log:
            log.append([entry("next")])
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        owner.lines.close()

    assert texts(tmp_path) == ["parent", "next"]


class SleepyDisk(Disk):
    """Stops its process at one of its operations, as if it had been suspended there."""

    def __init__(self, n_awake: int) -> None:
        self._n = n_awake

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, or sleep before."""
        self._pass()
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Sync, or sleep before."""
        self._pass()
        super().sync(fd)

    def _pass(self) -> None:
        self._n -= 1
        if self._n == 0:
            os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.parametrize("n_awake", range(9, 56))
def test_a_writer_that_was_replaced_while_it_slept_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_awake: int
) -> None:
    """Even if it wakes between its look at the lock and the write: then nobody has that file."""
    small_files(monkeypatch)
    sleeper = Child(partial(write_on, tmp_path, disk=SleepyDisk(n_awake))).go()
    os.waitpid(sleeper.pid, os.WUNTRACED)
    (tmp_path / LOCK_NAME).unlink()
    other = Child(partial(write_on, tmp_path, n_batches=7)).go()
    theirs = [other.lines.readline().decode().strip() for _ in range(3)]
    sleeper.send(signal.SIGCONT)
    *ours, last = sleeper.end()

    assert last.startswith("stopped")
    check(tmp_path, acknowledged([*ours, *theirs, *other.end()]))
    epochs = [frame.end.epoch for frame, _ in batches(tmp_path)]
    assert epochs == sorted(epochs)
