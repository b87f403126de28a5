"""Rules of torn tails: repaired after a crash, and reported."""

from pathlib import Path

import pytest

from events.blobs import Blobs
from events.log import Entry, EventLog
from events.segments import segment_path
from events.vocabulary import LogRepaired
from events.watermark import MARK_NAME
from tests.support.crash_disk import QUICK
from tests.support.logs import clock, entry, texts, write


@pytest.mark.parametrize("with_mark", [True, False])
def test_a_tail_torn_at_any_byte_is_repaired_and_reported(tmp_path: Path, with_mark: bool) -> None:
    """A record cut off by a crash was never acknowledged; the ones before it are safe."""
    ends = write(tmp_path, "first", "second")
    mark = (tmp_path / MARK_NAME).read_bytes()
    start, end = ends[1], write(tmp_path, "torn")[0]
    whole = segment_path(tmp_path, 0).read_bytes()
    for cut in range(start + 1, end):
        segment_path(tmp_path, 0).write_bytes(whole[:cut])
        (tmp_path / MARK_NAME).write_bytes(mark if with_mark else b"")

        assert texts(tmp_path) == ["first", "second"]
        with EventLog.open(tmp_path, clock, QUICK) as log:
            repaired = log.repaired
            assert repaired is not None
            log.append([Entry(repaired, "director"), entry("new")])

        assert (repaired.offset, repaired.n_bytes) == (start, cut - start)
        assert Blobs(tmp_path).get(repaired.sha) == whole[start:cut]
        assert texts(tmp_path) == ["first", "second", "new"]


def test_a_tail_of_zeros_is_torn(tmp_path: Path) -> None:
    """File systems may record the new length before the data."""
    write(tmp_path, "a")
    with segment_path(tmp_path, 0).open("ab") as file:
        file.write(bytes(4096))

    with EventLog.open(tmp_path, clock) as log:
        assert log.repaired is not None
        log.append([entry("b")])

    assert texts(tmp_path) == ["a", "b"]
    with EventLog.open(tmp_path, clock) as log:
        assert log.repaired is None


def test_a_repair_that_was_not_recorded_is_reported_again(tmp_path: Path) -> None:
    """A crash between open and the first append must not lose the report."""
    write(tmp_path, "a")
    with segment_path(tmp_path, 0).open("ab") as file:
        file.write(b"torn")

    reports = []
    for _ in range(2):
        with EventLog.open(tmp_path, clock) as log:
            reports.append(log.repaired)

    assert isinstance(reports[0], LogRepaired)
    assert reports[0] == reports[1]
