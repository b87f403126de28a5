"""Rules of faulty disks: nothing acknowledged is lost, and the reason is said."""

import errno
import threading
import time
from pathlib import Path

import pytest

from events import frames
from events.errors import LogWriteError
from events.log import Entry, EventLog, read
from events.segments import HEADER_BYTES, segment_path
from tests.support.logs import FaultyDisk, arm, clock, entry, texts, write


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_failed_write_poisons_the_log_and_loses_nothing(tmp_path: Path, code: int) -> None:
    """The half-written frame is taken back, and a new process goes on once there is space."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        log.append([entry("a")])
        size = segment_path(tmp_path, 0).stat().st_size
        arm(disk, code)
        with pytest.raises(LogWriteError, match="the write failed"):
            log.append([entry("b")])
        assert segment_path(tmp_path, 0).stat().st_size == size
        disk.fail_write = None
        with pytest.raises(LogWriteError, match="an earlier append failed"):
            log.append([entry("c")])

    assert write(tmp_path, "d")
    assert texts(tmp_path) == ["a", "d"]


def test_a_half_written_frame_that_cannot_be_taken_back_is_a_torn_tail(tmp_path: Path) -> None:
    """The disk that failed once may fail twice."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        log.append([entry("a")])
        arm(disk, errno.EIO)
        disk.fail_truncate = OSError(errno.EIO, "I/O error")
        with pytest.raises(LogWriteError):
            log.append([entry("b")])

    assert texts(tmp_path) == ["a"]
    with EventLog.open(tmp_path, clock) as log:
        assert log.repaired is not None
        assert log.repaired.n_bytes == 7


def test_a_torn_tail_outlives_a_failed_first_append(tmp_path: Path) -> None:
    """Its report was in the batch that failed, so the next open must give one again."""
    (end,) = write(tmp_path, "a")
    with segment_path(tmp_path, 0).open("ab") as file:
        file.write(b"?" * 20)
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        assert log.repaired is not None
        arm(disk, errno.EIO)
        with pytest.raises(LogWriteError):
            log.append([Entry(log.repaired, "director")])

    with EventLog.open(tmp_path, clock) as log:
        assert log.repaired is not None
        assert (log.repaired.offset, log.repaired.n_bytes) == (end, 20)


def test_a_failed_sync_poisons_the_log_for_good(tmp_path: Path) -> None:
    """A second sync could succeed although the first one's pages were dropped."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        log.append([entry("a")])
        disk.fail_sync = OSError(errno.EIO, "I/O error")
        with pytest.raises(LogWriteError, match="did not confirm"):
            log.append([entry("b")])
        disk.fail_sync = None
        with pytest.raises(LogWriteError, match="did not confirm"):
            log.append([entry("c")])

    assert texts(tmp_path)[0] == "a"


def test_an_interrupted_append_poisons_the_log(tmp_path: Path) -> None:
    """Ctrl-C between write and sync leaves a frame that may or may not be there."""
    with EventLog.open(tmp_path, clock, disk := FaultyDisk()) as log:
        log.append([entry("a")])
        disk.fail_sync = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            log.append([entry("b")])
        disk.fail_sync = None
        with pytest.raises(LogWriteError, match="interrupted"):
            log.append([entry("c")])

    write(tmp_path, "d")
    assert texts(tmp_path) == ["a", "b", "d"]


def test_an_unconfirmed_frame_is_written_again_before_it_counts(tmp_path: Path) -> None:
    """After a failed sync the frame may be readable, yet nowhere on the disk."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        log.append([entry("a")])
        disk.fail_sync = OSError(errno.EIO, "I/O error")
        with pytest.raises(LogWriteError):
            log.append([entry("b")])

    with pytest.raises(LogWriteError, match="cannot be opened"):
        EventLog.open(tmp_path, clock, disk)
    disk.fail_sync, disk.taken = None, 0
    with EventLog.open(tmp_path, clock, disk):
        assert disk.taken == 2  # the frame and the mark

    assert texts(tmp_path) == ["a", "b"]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """The system may take any part of what it is given."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        disk.max_write = 5
        log.append([entry("a" * 100)])

    assert texts(tmp_path) == ["a" * 100]


def test_a_disk_that_takes_nothing_is_an_error_not_a_loop(tmp_path: Path) -> None:
    """Zero bytes written for ever would hang the run without a word."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        disk.max_write = 0
        with pytest.raises(LogWriteError, match="took 0 of"):
            log.append([entry("a")])


def test_a_full_disk_at_the_start_is_reported(tmp_path: Path) -> None:
    """The very first file may not fit; nothing half-made may be left in the way."""
    disk = FaultyDisk()
    arm(disk, errno.ENOSPC)
    with pytest.raises(LogWriteError, match="No space left"):
        EventLog.open(tmp_path, clock, disk)

    assert sorted(p.name for p in tmp_path.rglob("*")) == ["LOCK", "log"]
    write(tmp_path, "a")
    assert texts(tmp_path) == ["a"]


def test_a_reader_beside_a_slow_writer_sees_only_whole_batches(tmp_path: Path) -> None:
    """A frame that is half there, or finished between two looks, is neither damage nor a record."""
    disk = FaultyDisk()
    disk.max_write = 40
    done = threading.Event()

    def write_slowly() -> None:
        with EventLog.open(tmp_path, clock, disk) as log:
            while not done.is_set():
                log.append([entry("a" * 300), entry("b" * 300)])

    EventLog.open(tmp_path, clock).close()
    writer = threading.Thread(target=write_slowly)
    writer.start()
    try:
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            assert len(list(read(tmp_path))) % 2 == 0
    finally:
        done.set()
        writer.join()

    assert texts(tmp_path)


def test_a_frame_finished_while_the_reader_looks_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a frame, then the next frame behind it: damage, or a writer between two reads."""
    write(tmp_path, "a", "b")
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[: HEADER_BYTES + 30] + bytes(20) + whole[HEADER_BYTES + 50 :])
    search = frames.has_later_frame

    def search_and_finish(rest: bytes, at: frames.Position) -> bool:
        path.write_bytes(whole)
        return search(rest, at)

    monkeypatch.setattr(frames, "has_later_frame", search_and_finish)
    assert texts(tmp_path) == ["a", "b"]
