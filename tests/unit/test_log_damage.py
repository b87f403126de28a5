"""Rules of damage: what no crash can cause is refused, with its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from events import codec, cursor, frames
from events.errors import LogCorruptError
from events.log import EventLog, read, read_start
from events.segments import HEADER_BYTES, segment_path
from events.vocabulary import Record, RunInterrupted
from events.watermark import MARK_NAME
from tests.support.logs import NOW, clock, texts, write


def damaged(run: Path, change: Callable[[bytes, list[int]], bytes]) -> LogCorruptError:
    """Write five frames, change the file, and return the error that a reader gets."""
    ends = write(run, *"abcde")
    path = segment_path(run, 0)
    path.write_bytes(change(path.read_bytes(), [HEADER_BYTES, *ends]))
    with pytest.raises(LogCorruptError) as reading:
        list(read(run))
    size = path.stat().st_size
    with pytest.raises(LogCorruptError) as opening:
        EventLog.open(run, clock)
    assert path.stat().st_size == size
    assert opening.value.args == reading.value.args
    return reading.value


@pytest.mark.parametrize("k", range(5))
def test_a_removed_frame_is_located(tmp_path: Path, k: int) -> None:
    """The error names the first missing record; the end is no exception."""
    error = damaged(tmp_path, lambda data, at: data[: at[k]] + data[at[k + 1] :])
    assert error.seq == k


@pytest.mark.parametrize("k", range(4))
def test_swapped_frames_are_located(tmp_path: Path, k: int) -> None:
    """Order is part of what happened."""
    error = damaged(
        tmp_path,
        lambda d, at: d[: at[k]] + d[at[k + 1] : at[k + 2]] + d[at[k] : at[k + 1]] + d[at[k + 2] :],
    )
    assert error.seq == k


@pytest.mark.parametrize("k", range(5))
def test_a_repeated_frame_is_located(tmp_path: Path, k: int) -> None:
    """Something that happened once must not count twice."""
    error = damaged(tmp_path, lambda data, at: data[: at[k + 1]] + data[at[k] :])
    assert error.seq == k + 1


def test_a_forged_frame_breaks_the_chain(tmp_path: Path) -> None:
    """Right checksums are not enough: the frame must follow from the ones before."""

    def forge(data: bytes, at: list[int]) -> bytes:
        start = read_start(tmp_path)
        event = RunInterrupted(reason="!")
        body = codec.encode([Record(seq=2, time_ns=NOW, actor="director", event=event)])
        forged, _ = frames.pack(start._replace(offset=at[2], seq=2), body, 1, 1)
        return data[: at[2]] + forged + data[at[3] :]

    error = damaged(tmp_path, forge)
    assert error.seq == 2
    assert "chain" in error.reason


def test_a_frame_longer_than_any_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forged length must not make a reader take all of the memory."""
    write(tmp_path, "a", "b" * 3000)
    monkeypatch.setattr(frames, "MAX_BODY_BYTES", 2000)
    monkeypatch.setattr(cursor, "WINDOW_BYTES", 1000)
    with pytest.raises(LogCorruptError, match="no frame has a body of") as refused:
        list(read(tmp_path))
    assert refused.value.seq == 1


def test_a_cut_off_end_is_refused_if_it_was_acknowledged(tmp_path: Path) -> None:
    """A torn tail and lost records look alike; what was acknowledged tells them apart."""
    error = damaged(tmp_path, lambda data, at: data[: at[3]])
    assert error.seq == 3
    assert "5 records were acknowledged" in error.reason


def test_an_unreadable_mark_says_nothing(tmp_path: Path) -> None:
    """It is written after the log and never synced, so a crash may leave anything there."""
    write(tmp_path, "a")
    for content in (None, b"", b"\xff" * 24, bytes(24)):
        (tmp_path / MARK_NAME).unlink()
        if content is not None:
            (tmp_path / MARK_NAME).write_bytes(content)
        assert texts(tmp_path)[0] == "a"
        write(tmp_path, "more")

    assert len(texts(tmp_path)) == 5


def test_another_runs_log_is_refused(tmp_path: Path) -> None:
    """A log put beside another run's files would be taken for that run's history."""
    write(tmp_path / "one", "a")
    write(tmp_path / "two", "a")
    segment_path(tmp_path / "one", 0).replace(segment_path(tmp_path / "two", 0))

    with pytest.raises(LogCorruptError, match="another log"):
        list(read(tmp_path / "two"))


def test_a_deleted_log_is_not_begun_anew(tmp_path: Path) -> None:
    """A fresh log in the place of a lost one would hide the loss."""
    write(tmp_path, "a")
    segment_path(tmp_path, 0).unlink()

    with pytest.raises(LogCorruptError, match="gone"):
        EventLog.open(tmp_path, clock)


def test_a_damaged_frame_with_its_repetition_behind_it_is_no_torn_tail(tmp_path: Path) -> None:
    """The repetition was written later, so the damaged one had been finished."""
    (end,) = write(tmp_path, "a")
    path = segment_path(tmp_path, 0)
    data = path.read_bytes()
    path.write_bytes(data[: end - 1] + b"?" + data[HEADER_BYTES:])
    (tmp_path / MARK_NAME).unlink()

    with pytest.raises(LogCorruptError, match="body"):
        list(read(tmp_path))
