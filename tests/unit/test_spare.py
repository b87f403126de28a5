"""Rules of the spare: zeros that a writer keeps behind a long log, and that mean nothing."""

import shutil
from pathlib import Path

import pytest

from events.blobs import Blobs
from events.damage import survey
from events.disk import MAX_SPARE_BYTES, SPARE_STEP
from events.frames import Position
from events.log import Entry, EventLog, read, read_head
from events.reading import spare_bytes
from events.segments import segment_path
from events.vocabulary import Record, RunInterrupted
from tests.support.crash_disk import QUICK

N_BYTES = 10_000


def entry(k: int) -> Entry:
    return Entry(RunInterrupted(reason=f"{k:0{N_BYTES}d}"), "director")


def end(offset: int, segment: int = 0) -> Position:
    return Position(b"salt", segment, offset, segment, b"", 1)


def size(run: Path) -> int:
    return segment_path(run, 0).stat().st_size


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, list[Record]]:
    """A run of 300 kB as its writer left it when it was killed, and its records."""
    run, copy = tmp_path / "run", tmp_path / "killed"
    with EventLog.open(run, lambda: 0, QUICK) as log:
        records = [record for k in range(30) for record in log.append([entry(k)])]
        shutil.copytree(run, copy)
    return copy, records


def test_a_short_log_has_no_spare_and_a_long_one_a_bounded_one() -> None:
    """Nobody should wonder at the size of a small run's log, or of a large one's."""
    sizes = (0, 4 * SPARE_STEP - 1, 4 * SPARE_STEP, 1 << 40)
    assert [spare_bytes(end(n)) for n in sizes] == [0, 0, SPARE_STEP, MAX_SPARE_BYTES]


def test_a_later_segment_has_a_spare_at_once() -> None:
    """The log is long by then."""
    assert spare_bytes(end(0, segment=1)) == MAX_SPARE_BYTES // 4


def test_most_appends_to_a_long_log_leave_its_length_alone(tmp_path: Path) -> None:
    """A new length is what makes a sync slow."""
    sizes = []
    with EventLog.open(tmp_path, lambda: 0, QUICK) as log:
        for k in range(60):
            log.append([entry(k)])
            sizes.append(size(tmp_path))

    assert len(set(sizes[30:])) <= 6


def test_a_closed_log_is_its_records_alone(tmp_path: Path) -> None:
    """What is copied, hashed or kept has no zeros behind it."""
    with EventLog.open(tmp_path, lambda: 0, QUICK) as log:
        for k in range(30):
            log.append([entry(k)])
        while_open, head = size(tmp_path), log.head

    assert size(tmp_path) < while_open
    assert b"\0" * 64 not in segment_path(tmp_path, 0).read_bytes()[-64:]
    assert read_head(tmp_path) == head


def test_the_spare_of_a_killed_run_is_no_torn_tail(killed: tuple[Path, list[Record]]) -> None:
    """No reader, no verification and no new writer makes anything of it."""
    run, records = killed
    before = size(run)

    assert list(read(run)) == records
    assert survey(run).torn_bytes == 0
    with EventLog.open(run, lambda: 0, QUICK) as log:
        assert log.repaired is None
        new = log.append([entry(30)])
        assert size(run) == before
    assert list(read(run)) == [*records, *new]


def test_a_torn_batch_in_the_spare_is_reported_without_its_zeros(
    killed: tuple[Path, list[Record]],
) -> None:
    """The report is of what was written, and the batch after it goes into its place."""
    run, records = killed
    at = len(segment_path(run, 0).read_bytes().rstrip(b"\0"))
    with segment_path(run, 0).open("r+b") as file:
        file.seek(at + 512)
        file.write(b"torn")

    assert survey(run).torn_bytes == 516
    with EventLog.open(run, lambda: 0, QUICK) as log:
        assert log.repaired is not None
        assert (log.repaired.offset, log.repaired.n_bytes) == (at, 516)
        assert Blobs(run).get(log.repaired.sha) == bytes(512) + b"torn"
        new = log.append([Entry(log.repaired, "director")])
    assert list(read(run)) == [*records, *new]
