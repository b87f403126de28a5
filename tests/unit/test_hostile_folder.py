"""Rules of a run folder that somebody prepared: nothing in it hangs a reader or leads elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from events import cursor, segments
from events.damage import survey
from events.errors import LogCorruptError, LogWriteError
from events.evidence import records_about
from events.index import index_path
from events.log import LOCK_NAME, EventLog, read, read_head
from events.segments import segment_path, segments_of
from events.watermark import MARK_NAME
from tests.support.crash_disk import QUICK
from tests.support.logs import clock, entry, texts, write

HUGE = 1 << 42
"""Bytes of a file that no memory holds; nearly none of them are on the disk."""


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment takes three records."""
    monkeypatch.setattr(segments, "MAX_RECORDS", 3)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two segments."""
    write(tmp_path / "run", *"abcd")
    return tmp_path / "run"


def make_huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(HUGE)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


ODD = (make_huge, make_pipe, make_endless, make_folder)


@pytest.mark.parametrize("make", ODD)
def test_an_odd_mark_says_nothing(run: Path, make: Callable[[Path], None]) -> None:
    """It is advisory, so it must not be able to stop a reader."""
    make(run / MARK_NAME)

    assert texts(run) == [*"abcd"]


@pytest.mark.parametrize("make", ODD)
def test_an_odd_index_does_not_count(run: Path, make: Callable[[Path], None]) -> None:
    """It is derived, so the segment beside it answers."""
    make(index_path(segment_path(run, 0)))

    assert records_about(run, 1) == []
    assert not survey(run).damage


@pytest.mark.parametrize("make", [make_huge, make_folder, make_pipe])
@pytest.mark.parametrize("first", [0, 3])
def test_an_odd_segment_is_refused_unread(
    run: Path, make: Callable[[Path], None], first: int
) -> None:
    """No input makes a reader hang, or need memory beyond its limit."""
    make(segment_path(run, first))

    for look in (read_head, lambda run: list(read(run)), lambda run: EventLog.open(run, clock)):
        with pytest.raises(LogCorruptError, match=r"not a file|longer than any") as refused:
            look(run)
        assert (refused.value.path, refused.value.seq) == (segment_path(run, first), first)
    assert survey(run).damage[0].file == segment_path(run, first)


def test_reading_writes_through_no_link(run: Path, tmp_path: Path) -> None:
    """An index that is made again must not land in the place of somebody's file."""
    victim, index = tmp_path / "victim", index_path(segment_path(run, 0))
    victim.write_text("mine")
    index.unlink()
    index.symlink_to(victim)

    records_about(run, 1)

    assert victim.read_text() == "mine"
    assert not index.is_symlink()


@pytest.mark.parametrize("name", [LOCK_NAME, MARK_NAME])
def test_a_writer_writes_through_no_link(run: Path, tmp_path: Path, name: str) -> None:
    """Who goes on with a run that somebody sent must not overwrite a file of their own."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (run / name).unlink()
    (run / name).symlink_to(victim)

    with pytest.raises(LogWriteError, match=name):
        EventLog.open(run, clock)

    assert victim.read_text() == "mine"


def test_the_folder_is_not_listed_for_every_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of segments that would take longer than reading them."""
    run, listed = tmp_path / "long", []
    with EventLog.open(run, clock, QUICK) as log:
        for _ in range(60):
            log.append([entry("a")])

    def counted(run: Path) -> list[int]:
        listed.append(run)
        return segments_of(run)

    monkeypatch.setattr(cursor, "segments_of", counted)

    assert len(texts(run)) == 60
    assert len(listed) < 4
