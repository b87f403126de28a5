"""The disk of the simulated world fails in the ways that it says, and in no other."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from events.errors import LogWriteError
from events.log import Entry, EventLog, read
from events.vocabulary import Record, RunInterrupted
from sim.disk import Killed, Manner, SimulatedDisk
from tests.support.runs import ticking

ENTRY = Entry(RunInterrupted(reason="x" * 100), "director")


class Clock:
    """Seconds, set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        """Read it."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def disk(clock: Clock) -> SimulatedDisk:
    return SimulatedDisk(clock, 0)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    """A file of ten bytes."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    handle = os.open(path, os.O_RDWR)
    yield handle
    os.close(handle)


def content(fd: int) -> bytes:
    return os.pread(fd, 100, 0)


def test_a_full_disk_takes_nothing_for_a_while(disk: SimulatedDisk, clock: Clock, fd: int) -> None:
    """Writes fail for want of space until the time is over; what is there stays."""
    disk.full_until_s = 5.0
    with pytest.raises(OSError, match="No space left") as caught:
        disk.write(fd, b"ab", 0)
    assert caught.value.errno == errno.ENOSPC
    assert content(fd) == b"0123456789"

    clock.now_s = 5.0
    assert disk.write(fd, b"ab", 0) == 2


def test_a_killed_process_does_nothing_more(disk: SimulatedDisk, fd: int) -> None:
    """What a dying process still tries, its clean-up above all, does not happen."""
    disk.kill_after(1, "kill")
    disk.write(fd, b"a", 0)
    with pytest.raises(Killed):
        disk.write(fd, b"b", 1)
    with pytest.raises(OSError, match="dead"):
        disk.truncate(fd, 0)
    assert content(fd) == b"a123456789"

    disk.revive()
    disk.truncate(fd, 1)
    assert content(fd) == b"a"


def test_a_process_may_die_at_once(disk: SimulatedDisk) -> None:
    """While it waits, in no operation of the disk."""
    with pytest.raises(Killed):
        disk.kill_after(-1.0, "kill")
    assert disk.is_dead


def test_a_torn_write_is_done_in_part(disk: SimulatedDisk, fd: int) -> None:
    """It strikes at a write, since nothing else can be torn."""
    disk.kill_after(-0.5, "torn")
    disk.sync(fd)
    with pytest.raises(Killed):
        disk.write(fd, b"abcd", 8)
    assert content(fd) == b"01234567ab"


def test_a_power_cut_forgets_what_was_not_synced(disk: SimulatedDisk, fd: int) -> None:
    """Bytes and lengths go back to the last sync, overlapping writes and cuts included."""
    disk.write(fd, b"S", 0)
    disk.sync(fd)
    disk.write(fd, b"abc", 2)
    disk.write(fd, b"defgh", 1)
    disk.write(fd, b"xyz", 2)
    disk.truncate(fd, 4)
    disk.write(fd, b"longer than it was", 3)
    with pytest.raises(Killed):
        disk.kill_after(-1.0, "power")
    assert content(fd) == b"S123456789"


def test_a_kill_forgets_nothing(disk: SimulatedDisk, fd: int) -> None:
    """The machine goes on; a later power cut still takes what nobody has synced."""
    disk.write(fd, b"a", 0)
    with pytest.raises(Killed):
        disk.kill_after(-1.0, "kill")
    assert content(fd) == b"a123456789"

    disk.revive()
    with pytest.raises(Killed):
        disk.kill_after(-1.0, "power")
    assert content(fd) == b"0123456789"


@pytest.mark.parametrize("manner", ["kill", "torn", "power"])
@pytest.mark.parametrize("n_operations", [k + 0.5 for k in range(12)])
def test_a_log_survives_it(
    disk: SimulatedDisk, tmp_path: Path, n_operations: float, manner: Manner
) -> None:
    """Whatever the operation, all that was acknowledged is there for the next process."""
    run, safe = tmp_path / "run", list[Record]()

    def write_for_ever() -> None:
        with EventLog.open(run, ticking(), disk) as log:
            while True:
                safe.extend(log.append([ENTRY]))

    disk.kill_after(n_operations, manner)
    with pytest.raises(Killed):
        write_for_ever()
    disk.revive()

    with EventLog.open(run, ticking(), disk) as log:
        if log.repaired:
            log.append([Entry(log.repaired, "director")])
        n_kept = sum(r.event == ENTRY.event for r in read(run))
        assert len(safe) <= n_kept <= len(safe) + 1
        log.append([ENTRY])


def test_a_full_disk_stops_the_log(disk: SimulatedDisk, tmp_path: Path) -> None:
    """And when there is space again, the next process goes on."""
    with EventLog.open(tmp_path, ticking(), disk) as log:
        log.append([ENTRY])
        disk.full_until_s = 1.0
        with pytest.raises(LogWriteError, match="No space left"):
            log.append([ENTRY])
        disk.full_until_s = 0.0

    with EventLog.open(tmp_path, ticking(), disk) as log:
        log.append([ENTRY])
    assert [r.event for r in read(tmp_path)] == [ENTRY.event] * 2
