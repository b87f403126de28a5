"""Rules of appends by many threads: they share writes, and each gets what is its own."""

import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from events.damage import survey
from events.disk import Disk
from events.errors import LogWriteError
from events.log import Entry, EventLog, batches, read
from events.vocabulary import Record, RunInterrupted
from tests.support.logs import clock, entry, texts

N_THREADS = 64
N_EACH = 20


class SlowDisk(Disk):
    """A disk that counts its syncs, takes a while for each, and may be held up or fail."""

    def __init__(self) -> None:
        self.n_syncs = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.fail: BaseException | None = None

    def sync(self, fd: int) -> None:
        """Wait until told to go on."""
        self.n_syncs += 1
        time.sleep(0.001)
        self.go_on.wait()
        if self.fail:
            raise self.fail


def hold_up(pool: ThreadPoolExecutor, log: EventLog, disk: SlowDisk, text: str) -> object:
    """Let a thread append ``text`` and wait in its sync, so that what comes then must wait."""
    disk.go_on.clear()
    before = disk.n_syncs
    first = pool.submit(log.append, [entry(text)])
    while disk.n_syncs == before:
        time.sleep(0.001)
    return first


def test_sixty_four_threads_share_syncs_and_each_gets_its_own_records(tmp_path: Path) -> None:
    """Each append is acknowledged when it is durable, not before."""
    disk = SlowDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        disk.n_syncs = 0

        def produce(thread: int) -> list[tuple[Record, ...]]:
            return [
                log.append([entry(f"{thread}.{n}.{k}") for k in range(1 + n % 2)])
                for n in range(N_EACH)
            ]

        with ThreadPoolExecutor(N_THREADS) as pool:
            answers = list(pool.map(produce, range(N_THREADS)))

    assert disk.n_syncs < N_THREADS * N_EACH / 4
    for thread, own in enumerate(answers):
        said = [record.event for records in own for record in records]
        given = (f"{thread}.{n}.{k}" for n in range(N_EACH) for k in range(1 + n % 2))
        assert said == [RunInterrupted(reason=text) for text in given]
    every = (record for own in answers for records in own for record in records)
    assert sorted(every, key=lambda record: record.seq) == list(read(tmp_path))
    assert survey(tmp_path).damage == []


def test_a_single_thread_has_a_sync_and_a_batch_for_each_append(tmp_path: Path) -> None:
    """Nothing is put off in the hope of company."""
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log:
        disk.n_syncs = 0
        for text in "abc":
            log.append([entry(text)])
    assert disk.n_syncs == 3
    assert len(list(batches(tmp_path))) == 3


def test_what_waits_goes_together(tmp_path: Path) -> None:
    """One frame, and one sync."""
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log, ThreadPoolExecutor(9) as pool:
        hold_up(pool, log, disk, "first")
        others = [pool.submit(log.append, [entry(text)]) for text in "abcdefgh"]
        time.sleep(0.1)
        disk.go_on.set()
        answers = [other.result()[0] for other in others]
    assert [len(records) for _, records in batches(tmp_path)] == [1, 8]
    assert [texts(tmp_path)[r.seq] for r in answers] == list("abcdefgh")


def test_an_event_that_cannot_be_recorded_is_refused_to_its_own_thread_alone(
    tmp_path: Path,
) -> None:
    """The others had no part in it."""
    bad = Entry(RunInterrupted(reason="").model_copy(update={"reason": ["x"]}), "director")
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log, ThreadPoolExecutor(9) as pool:
        hold_up(pool, log, disk, "first")
        good = [pool.submit(log.append, [entry(text)]) for text in "ab"]
        wrong = pool.submit(log.append, [entry("lost with it"), bad])
        time.sleep(0.1)
        disk.go_on.set()
        with pytest.raises(LogWriteError, match="cannot be recorded"):
            wrong.result()
        assert all(call.result() for call in good)
    assert sorted(texts(tmp_path)) == ["a", "b", "first"]


def test_a_failed_sync_is_told_to_all_that_waited(tmp_path: Path) -> None:
    """None of them may take its batch for durable."""
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log, ThreadPoolExecutor(9) as pool:
        hold_up(pool, log, disk, "first")
        others = [pool.submit(log.append, [entry(text)]) for text in "abcd"]
        time.sleep(0.1)
        disk.fail = OSError(errno.EIO, "I/O error")
        disk.go_on.set()
        for other in others:
            with pytest.raises(LogWriteError, match="did not confirm"):
                other.result()


def test_an_interrupted_append_leaves_nobody_waiting(tmp_path: Path) -> None:
    """Ctrl-C reaches one thread; the others hear that nothing is certain."""
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log, ThreadPoolExecutor(9) as pool:
        hold_up(pool, log, disk, "first")
        others = [pool.submit(log.append, [entry(text)]) for text in "abcd"]
        time.sleep(0.1)
        disk.fail = KeyboardInterrupt()
        disk.go_on.set()
        errors = [other.exception(timeout=10) for other in others]
    assert all(isinstance(error, LogWriteError) for error in errors)
    assert all("interrupted" in str(error) for error in errors)


def test_a_log_is_closed_after_the_append_under_way(tmp_path: Path) -> None:
    """And what comes later is told that it is closed."""
    with EventLog.open(tmp_path, clock, disk := SlowDisk()) as log, ThreadPoolExecutor(9) as pool:
        first = hold_up(pool, log, disk, "first")
        closing = pool.submit(log.close)
        time.sleep(0.05)
        assert not closing.done()
        disk.go_on.set()
        closing.result()
        assert first
        with pytest.raises(LogWriteError, match="closed"):
            log.append([entry("late")])
    assert texts(tmp_path) == ["first"]
