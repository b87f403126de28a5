"""Rules of the one writer: a second one is refused, a replaced one stops."""

import fcntl
import json
import os
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from events.blobs import Blobs
from events.disk import DISK, Disk
from events.errors import LogBusyError, LogCorruptError, LogWriteError
from events.lock import Lock
from events.log import EventLog, batches
from events.segments import segment_path
from tests.support.logs import clock, entry, last_segment, texts, write


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    """Two writers would give one number twice; the error says who has the run."""
    with EventLog.open(tmp_path, clock), pytest.raises(LogBusyError) as busy:
        EventLog.open(tmp_path, clock)

    assert f"process {os.getpid()} on" in str(busy.value)
    write(tmp_path, "a")


def test_an_owner_that_has_not_signed_yet_still_has_the_run(tmp_path: Path) -> None:
    """The lock counts, not the name in it."""
    with EventLog.open(tmp_path, clock):
        (tmp_path / "LOCK").write_bytes(b"{")
        with pytest.raises(LogBusyError, match="not given its name"):
            EventLog.open(tmp_path, clock)


def test_an_owner_that_is_gone_is_not_named(tmp_path: Path) -> None:
    """Its name stays until the next owner has signed; who stops that one stops nobody."""
    with EventLog.open(tmp_path, clock):
        gone = subprocess.Popen(["true"])
        gone.wait()
        signed = json.loads((tmp_path / "LOCK").read_bytes())
        (tmp_path / "LOCK").write_text(json.dumps(signed | {"pid": gone.pid}))
        with pytest.raises(LogBusyError, match="not given its name"):
            EventLog.open(tmp_path, clock)
        (tmp_path / "LOCK").write_text(json.dumps(signed | {"pid": gone.pid, "host": "other"}))
        with pytest.raises(LogBusyError, match=f"process {gone.pid} on other"):
            EventLog.open(tmp_path, clock)


def test_a_second_writer_in_another_process_is_refused(tmp_path: Path) -> None:
    """The usual case: `run` started twice on one folder."""
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from events.log import EventLog
        with EventLog.open(Path(sys.argv[1]), lambda: 0):
            print("open", flush=True)
            sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(LogBusyError, match=f"process {other.pid} on"):
            EventLog.open(tmp_path, clock)
        other.kill()

    write(tmp_path, "a")
    assert texts(tmp_path) == ["a"]


def test_a_forked_child_neither_keeps_nor_uses_the_log(tmp_path: Path) -> None:
    """A worker that outlives a killed run must not stand in the way of the next one."""
    log = EventLog.open(tmp_path, clock)
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            log.append([entry("from the child")])
            os.write(to_parent, b"appended")
        except LogWriteError as e:
            os.write(to_parent, e.reason.encode())
        log.close()
        os.close(to_child)
        os.read(from_parent, 1)
        os._exit(0)

    with ExitStack() as cleanup:
        for fd in (from_child, to_parent, from_parent):
            cleanup.callback(os.close, fd)
        cleanup.callback(os.waitpid, child, 0)
        cleanup.callback(os.close, to_child)
        assert b"forked" in os.read(from_child, 100)
        with pytest.raises(LogBusyError):
            EventLog.open(tmp_path, clock)
        log.close()
        write(tmp_path, "a")

    assert texts(tmp_path) == ["a"]


def test_a_refused_open_leaves_nothing_open(tmp_path: Path) -> None:
    """A supervisor that tries again and again would run out of files, or lock itself out."""
    write(tmp_path, "a")
    segment_path(tmp_path, 0).write_bytes(b"not a log")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(LogCorruptError):
            EventLog.open(tmp_path, clock)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


# ---- fencing -------------------------------------------------------------------------------


OTHER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from events.log import Entry, EventLog
    from events.vocabulary import RunInterrupted
    with EventLog.open(Path(sys.argv[1]), lambda: 0) as log:
        log.append([Entry(RunInterrupted(reason="theirs"), "director")])
    """
)


def is_stopped(log: EventLog, run: Path) -> bool:
    """Whether a writer that was replaced leaves the log alone, now and when it is closed."""
    before = last_segment(run).read_bytes()
    for _ in range(2):
        with pytest.raises(LogWriteError, match="another writer has taken over"):
            log.append([entry("late")])
    log.close()
    return last_segment(run).read_bytes() == before


def test_a_writer_whose_lock_file_was_replaced_stops_before_its_next_write(tmp_path: Path) -> None:
    """On a shared file system a lock can be lost without a word to its holder."""
    log = EventLog.open(tmp_path, clock)
    log.append([entry("ours")])
    (tmp_path / "LOCK").unlink()
    subprocess.run([sys.executable, "-c", OTHER, str(tmp_path)], check=True)

    assert is_stopped(log, tmp_path)
    assert texts(tmp_path) == ["ours", "theirs"]


@pytest.mark.parametrize("content", [None, b"", b'{"pid": 1, "epoch": 7}'])
def test_a_writer_whose_lock_file_is_not_as_it_signed_it_stops(
    tmp_path: Path, content: bytes | None
) -> None:
    """Whoever changed it may be writing."""
    log = EventLog.open(tmp_path, clock)
    log.append([entry("ours")])
    (tmp_path / "LOCK").unlink() if content is None else (tmp_path / "LOCK").write_bytes(content)

    assert is_stopped(log, tmp_path)
    assert texts(tmp_path) == ["ours"]


class ThievishDisk(Disk):
    """Loses the lock while it syncs."""

    def sync(self, fd: int) -> None:
        """Sync, and take the lock file away."""
        super().sync(fd)
        for path in Path(f"/proc/self/fd/{fd}").readlink().parent.parent.glob("LOCK"):
            path.unlink()


def test_a_batch_during_which_the_lock_was_lost_is_not_acknowledged(tmp_path: Path) -> None:
    """The next writer may have left the file that it was written to."""
    write(tmp_path, "a")
    log = EventLog.open(tmp_path, clock, ThievishDisk())
    with pytest.raises(LogWriteError, match="another writer has taken over"):
        log.append([entry("b")])
    log.close()


def test_a_replaced_writer_puts_no_more_blobs(tmp_path: Path) -> None:
    """It would cut off the ones that the next writer is just putting."""
    with EventLog.open(tmp_path, clock) as log:
        blobs = Blobs(tmp_path)
        blobs.fence(log.check)
        sha = blobs.put(b"ours")
        (tmp_path / "LOCK").unlink()
        with pytest.raises(LogWriteError, match="another writer has taken over"):
            blobs.put(b"late")
    assert list(Blobs(tmp_path).names()) == [sha]


def test_a_writer_that_knows_nothing_of_the_last_one_goes_on_in_new_files(tmp_path: Path) -> None:
    """The last one may be asleep between its look at the lock and its write."""
    write(tmp_path, "a")
    sha = Blobs(tmp_path).put(b"a")
    old = last_segment(tmp_path).open("r+b")
    (tmp_path / "LOCK").unlink()
    write(tmp_path, "b")
    with old:
        old.truncate(0)
    assert texts(tmp_path) == ["a", "b"]
    assert Blobs(tmp_path).place(sha).path != Blobs(tmp_path).place(Blobs(tmp_path).put(b"b")).path


def test_a_new_file_takes_the_place_of_no_other(tmp_path: Path) -> None:
    """A replaced writer must not put its own segment over that of the next writer."""
    DISK.create(tmp_path / "file", b"theirs")
    with pytest.raises(FileExistsError):
        DISK.create(tmp_path / "file", b"ours")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"theirs"]


def epochs(run: Path) -> list[int]:
    return [frame.end.epoch for frame, _ in batches(run)]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[" * 4096, b"[]", b'{"epoch": "x"}', b'{"epoch": 1}'],
)
def test_each_writer_has_a_higher_number_than_the_one_before(
    tmp_path: Path, content: bytes | None
) -> None:
    """Even if the lock file is lost or damaged: the log has the number as well."""
    write(tmp_path, "a", "b")
    write(tmp_path, "c")
    (tmp_path / "LOCK").unlink() if content is None else (tmp_path / "LOCK").write_bytes(content)
    write(tmp_path, "d")
    assert epochs(tmp_path) == [1, 1, 2, 3]


def test_a_writer_that_wrote_nothing_counts(tmp_path: Path) -> None:
    """It may have been about to."""
    write(tmp_path, "a")
    write(tmp_path)
    write(tmp_path, "b")
    assert epochs(tmp_path) == [1, 3]


def test_the_lock_that_is_taken_is_the_one_at_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may replace the file between its opening and its locking."""
    path = tmp_path / "LOCK"
    flock = fcntl.flock

    def replace_first(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", replace_first)
    with Lock(path) as lock:
        assert lock.is_ours()
        with pytest.raises(LogBusyError):
            Lock(path).__enter__()
