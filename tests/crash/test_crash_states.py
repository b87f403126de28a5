"""Every state in which a power cut may leave the disk: nothing acknowledged lost, nothing refused.

A disk notes each write, cut, sync and new name of a run. Between any two of them the power may
fail; then any mix of old and new 512-byte sectors of what was not synced is on the disk, with the
old or the new length; a new segment is there or not; the mark is gone, old or new. A new process
must go on from each of these states.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from events import segments
from events.blobs import FOLDER_NAME
from events.errors import LogCorruptError
from events.log import LOCK_NAME, Entry, EventLog, read
from events.vocabulary import Record, RunInterrupted
from events.watermark import MARK_NAME, read_mark
from tests.support.child import Child, Say
from tests.support.crash_disk import QUICK, CrashDisk, Moment
from tests.support.logs import last_segment

MIN_STATES = 50_000
MAX_LIES = 80
"""States of a moment and a length of the log on a disk that lies: a sample."""


def entry(n_bytes: int, letter: str) -> Entry:
    return Entry(RunInterrupted(reason=letter * n_bytes), "director")


def append(log: EventLog, disk: CrashDisk, *entries: Entry) -> None:
    """Append, and tell the disk what is acknowledged."""
    disk.n_tried = disk.n_safe + len(entries)
    log.append(entries)
    disk.n_safe = disk.n_tried


def tear(run: Path, n_bytes: int) -> None:
    """Leave a batch of which the first sectors are missing and the last ones are there."""
    path = last_segment(run)
    whole = path.read_bytes()
    mark = (run / MARK_NAME).read_bytes()
    with EventLog.open(run, lambda: 0, QUICK) as log:
        log.append([entry(n_bytes, "t")])
    torn = path.read_bytes()[len(whole) + n_bytes // 2 :]
    path.write_bytes(whole + bytes(n_bytes // 2) + torn)
    (run / MARK_NAME).write_bytes(mark)


def grown(run: Path, lies: bool = False) -> CrashDisk:
    """A new log takes a small batch and a large one."""
    disk = CrashDisk(run, lies=lies)
    with EventLog.open(run, lambda: 0, disk) as log:
        append(log, disk, entry(10, "a"))
        append(log, disk, entry(5600, "b"), entry(0, "c"))
    return disk


def spared(run: Path, lies: bool = False) -> CrashDisk:
    """Batches make a spare, go into it and over its end; the next process begins without one."""
    disk = CrashDisk(run, lies=lies)
    with EventLog.open(run, lambda: 0, disk) as log:
        for k, n_bytes in enumerate((5400, 300, 4600)):
            append(log, disk, entry(n_bytes, "def"[k]), entry(k, "g"))
    with EventLog.open(run, lambda: 0, disk) as log:
        append(log, disk, entry(5500, "h"))
    return disk


def repaired(run: Path, lies: bool = False) -> CrashDisk:
    """A torn tail is replaced by its report, in a batch that is shorter or longer."""
    disk = CrashDisk(run, lies=lies)
    for torn, n_bytes in ((2100, 200), (900, 4900)):
        tear(run, torn)
        disk.reload()
        with EventLog.open(run, lambda: 0, disk) as log:
            assert log.repaired
            append(log, disk, Entry(log.repaired, "director"), entry(n_bytes, "i"))
            append(log, disk, entry(4900, "j"))
    return disk


def sealed(run: Path, lies: bool = False) -> CrashDisk:
    """Segments of three records are sealed: in the middle of a process, and over a torn tail."""
    disk = CrashDisk(run, lies=lies)
    with EventLog.open(run, lambda: 0, disk) as log:
        append(log, disk, entry(900, "k"), entry(5, "l"))
        append(log, disk, entry(4700, "m"))
        append(log, disk, entry(4900, "n"))
        append(log, disk, entry(300, "o"), entry(0, "p"))
    with last_segment(run).open("ab") as file:
        file.write(b"torn" * 400)
    disk.reload()
    with EventLog.open(run, lambda: 0, disk) as log:
        assert log.repaired
        append(log, disk, Entry(log.repaired, "director"), entry(4400, "q"))
    with EventLog.open(run, lambda: 0, disk) as log:
        append(log, disk, entry(3800, "r"))
        append(log, disk, entry(4600, "s"))
    return disk


RUNS = {grown: segments.MAX_RECORDS, spared: 10, repaired: 10, sealed: 3}
"""And how many records a segment takes."""


@pytest.fixture
def short_spares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros are put behind a log of 4 KB already, so that short logs have all states."""
    monkeypatch.setattr("events.disk.SPARE_STEP", 1024)
    monkeypatch.setattr("events.disk.MAX_SPARE_BYTES", 4096)


Files = dict[str, bytes]


def states(moments: list[Moment]) -> Iterator[tuple[Moment, Files, bytes]]:
    """Every state of every moment: the moment, the segments, the mark."""
    rng = np.random.default_rng(5)
    for moment in moments:
        for files in moment.segments(rng):
            for mark in {b"", *moment.marks}:
                yield moment, files, mark


def put(run: Path, files: Files, mark: bytes) -> None:
    """Make a run folder what it is after a power cut; the lock is as durable as the mark.

    The torn tails of other states go as well: to look for blobs among thousands takes time.
    """
    folder = run / segments.FOLDER
    folder.mkdir(exist_ok=True)
    if not mark:
        (run / LOCK_NAME).unlink(missing_ok=True)
    for path in (run / FOLDER_NAME / "0000.pack", *folder.iterdir()):
        if path.name not in files:
            path.unlink(missing_ok=True)
    for path, data in {**{folder / n: d for n, d in files.items()}, run / MARK_NAME: mark}.items():
        with path.open("r+b" if path.exists() else "w+b", buffering=0) as file:
            file.write(data)
            file.truncate()  # not to 0 first: some file systems then write the old data out


def recovered(run: Path) -> list[Record]:
    """What a new process finds; it reports what was torn, goes on, and a reader sees all of it."""
    with EventLog.open(run, lambda: 0, QUICK) as log:
        report = [Entry(log.repaired, "director")] if log.repaired else []
        new = log.append([*report, entry(7, "z")])
    found = list(read(run))
    assert tuple(found[-len(new) :]) == new
    return found[: -len(new)]


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("short_spares")
def test_a_power_cut_at_any_moment_loses_nothing_and_stops_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is found is what was acknowledged, or that and the whole batch under way."""
    children = []
    for make, max_records in RUNS.items():  # each in a process, to use all processors
        monkeypatch.setattr(segments, "MAX_RECORDS", max_records)
        children.append(Child(partial(outlive_all_states, folder, make)).go())

    assert sum(int(n) for child in children for n in child.end()) >= MIN_STATES


def outlive_all_states(folder: Path, make: Callable[[Path], CrashDisk], say: Say) -> None:
    """Recover from every state of one story; say how many there were."""
    run, cut = folder / make.__name__, folder / f"cut {make.__name__}"
    EventLog.open(run, lambda: 0, QUICK).close()
    moments, records = make(run).moments, list(read(run))
    cut.mkdir()
    known: dict[tuple[bytes, ...], int] = {}
    for moment, files, mark in states(moments):
        state = (mark, *files.values())
        if state not in known:
            put(cut, files, mark)
            found = recovered(cut)
            assert found == records[: len(found)]
            known[state] = len(found)
        assert known[state] in (moment.n_safe, moment.n_tried)
    say(str(len(known)))


@pytest.mark.usefixtures("short_spares")
def test_a_disk_that_lies_about_a_sync_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was acknowledged and is gone is refused, as far as the mark knows of it."""
    rng = np.random.default_rng(6)
    n_refused = n_found = 0
    for make, max_records in RUNS.items():
        monkeypatch.setattr(segments, "MAX_RECORDS", max_records)
        run, cut = folder / make.__name__, folder / f"cut {make.__name__}"
        EventLog.open(run, lambda: 0, QUICK).close()
        moments, records = make(run, lies=True).moments, list(read(run))
        cut.mkdir()
        for moment in moments[1::3]:
            for files in moment.segments(rng, most=MAX_LIES):
                put(cut, files, moment.marks[-1])
                mark = read_mark(cut)
                try:
                    found = recovered(cut)
                except LogCorruptError:
                    n_refused += 1
                    continue
                assert found == records[: len(found)]
                assert len(found) >= (mark.seq if mark else 0)
                n_found += 1

    assert n_refused > 100
    assert n_found > 10
