"""Rules of the log: durable, verified, repaired after a crash, refused after any other damage."""

import errno
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from events import codec, frames
from events.blobs import Blobs
from events.disk import Disk
from events.errors import (
    BlobCorruptError,
    BlobMissingError,
    LogBusyError,
    LogCorruptError,
    LogError,
    LogMissingError,
    LogSchemaError,
    LogWriteError,
)
from events.log import LOG_NAME, MARK_NAME, Entry, EventLog, read, read_all, read_head
from events.vocabulary import (
    LogRepaired,
    MeasurementRequested,
    PairsMeasured,
    Record,
    RunInterrupted,
    Spend,
)

NOW = 1_700_000_000_000_000_000


def clock() -> int:
    return NOW


def entry(text: str) -> Entry:
    return Entry(RunInterrupted(reason=text), actor="director")


def write(run: Path, *texts: str) -> list[int]:
    """Append one frame per text; return the offset at which each one ends."""
    ends = []
    with EventLog.open(run, clock) as log:
        for text in texts:
            log.append([entry(text)])
            ends.append((run / LOG_NAME).stat().st_size)
    return ends


def texts(run: Path) -> list[str]:
    return [r.event.reason for r in read(run) if isinstance(r.event, RunInterrupted)]


class QuickDisk(Disk):
    """A disk that leaves durability to chance, for tests of what the bytes mean."""

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_folder(self, folder: Path) -> None:
        """Do nothing."""


class FaultyDisk(Disk):
    """A disk that fails as told, a number of operations from now."""

    def __init__(self) -> None:
        self.fail_write: OSError | None = None
        self.fail_sync: OSError | KeyboardInterrupt | None = None
        self.fail_truncate: OSError | None = None
        self.max_write: int | None = None
        self.taken = 0

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, or fail as told."""
        if self.fail_write and self.taken >= 1:
            raise self.fail_write
        limit = 7 if self.fail_write else self.max_write
        self.taken += 1
        return super().write(fd, data[:limit], offset)

    def sync(self, fd: int) -> None:
        """Sync, or fail as told."""
        if self.fail_sync:
            raise self.fail_sync
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, or fail as told."""
        if self.fail_truncate:
            raise self.fail_truncate
        super().truncate(fd, size)


def arm(disk: FaultyDisk, code: int) -> None:
    """Let the next write take 7 bytes and the one after it fail."""
    disk.taken = 0
    disk.fail_write = OSError(code, os.strerror(code))


# ---- append and read -----------------------------------------------------------------------


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    """A reader gets the very records that the writer got, numbered without gaps from 0."""
    with EventLog.open(tmp_path, clock) as log:
        first = log.append([entry("a"), replace(entry("b"), because=(0,))])
        second = log.append([entry("c")])

    records = list(read(tmp_path))
    assert records == [*first, *second]
    assert [(r.seq, r.time_ns, r.actor, r.because) for r in records] == [
        (0, NOW, "director", ()),
        (1, NOW, "director", (0,)),
        (2, NOW, "director", ()),
    ]


def test_tuples_dicts_and_floats_survive_to_the_last_bit(tmp_path: Path) -> None:
    """Decisions are derived again from these values."""
    sha = "0" * 64
    request = MeasurementRequested(
        job=1,
        kernel="k",
        purpose="test",
        incumbent=1,
        candidate=2,
        incumbent_artifact=sha,
        candidate_artifact=sha,
        bounds={"β": sha},
        coins=(True, False),
        launches=3,
        inputs_seed=2**62,
        reserved=Spend(device_s=0.1 + 0.2),
        reasons="because\n\x00 ✓",
    )
    pair = {
        "candidate_first": True,
        "incumbent_s": 5e-324,
        "candidate_s": 0.1,
        "probe_s": 1.7976931348623157e308,
    }
    reply = PairsMeasured.model_validate(
        {
            "job": 1,
            "pairs": (pair,),
            "samples": sha,
            "incumbent_margin": 1 / 3,
            "candidate_margin": -0.0,
            "device_s": 1,
            "token": 2**63,
            "toolchain": "t",
        }
    )
    with EventLog.open(tmp_path, clock) as log:
        log.append([Entry(request, "director"), Entry(reply, "device", (0,))])

    read_request, read_reply = (r.event for r in read(tmp_path))
    assert read_request == request
    assert repr(read_reply) == repr(reply)


def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    """Numbers and the chain continue over a reopen."""
    write(tmp_path, "a", "b")
    write(tmp_path, "c")

    assert [(r.seq, texts(tmp_path)[r.seq]) for r in read(tmp_path)] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
    ]


def test_the_head_names_the_whole_history(tmp_path: Path) -> None:
    """It changes with every append, and a reader computes the same one."""
    with EventLog.open(tmp_path, clock) as log:
        heads = [log.head]
        for text in "ab":
            log.append([entry(text)])
            heads.append(log.head)
            assert read_head(tmp_path) == heads[-1]
            assert read_all(tmp_path) == (list(read(tmp_path)), heads[-1])

    assert len(set(heads)) == 3
    with EventLog.open(tmp_path, clock) as log:
        assert log.head == heads[-1]


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    """A frame without records would have no number."""
    with EventLog.open(tmp_path, clock) as log:
        size = (tmp_path / LOG_NAME).stat().st_size
        assert log.append([]) == ()
        assert (tmp_path / LOG_NAME).stat().st_size == size


def test_a_new_log_is_empty_and_readable(tmp_path: Path) -> None:
    """A run killed right after its start has an empty log, not a broken one."""
    with EventLog.open(tmp_path / "new" / "run", clock) as log:
        assert log.repaired is None
        assert list(read(tmp_path / "new" / "run")) == []


def test_reading_where_there_is_no_log_says_so_at_once(tmp_path: Path) -> None:
    """A mistyped folder must not look like an empty run, even before the first record."""
    with pytest.raises(LogMissingError, match="no such log"):
        read(tmp_path)


def test_an_event_that_no_reader_could_read_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """One unreadable record would make the run unreadable for ever; the log itself goes on."""
    bad = RunInterrupted(reason="").model_copy(update={"reason": ["not", "text"]})
    huge = Entry(RunInterrupted(reason="x"), "director", because=(2**70,))
    with EventLog.open(tmp_path, clock) as log:
        for wrong in (Entry(bad, "director"), huge):
            with pytest.raises(LogWriteError, match="cannot be recorded"):
                log.append([entry("lost with it"), wrong])
        log.append([entry("a")])

    assert texts(tmp_path) == ["a"]


def test_a_batch_with_a_large_value_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources and samples in the log would make every replay read them."""
    monkeypatch.setattr(codec, "MAX_BODY_BYTES", 1000)
    with EventLog.open(tmp_path, clock) as log, pytest.raises(LogWriteError, match="into blobs"):
        log.append([entry("x" * 1000)])


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    """Its lock is gone, so another writer may be at work."""
    log = EventLog.open(tmp_path, clock)
    log.close()
    log.close()

    with pytest.raises(LogWriteError, match="closed"):
        log.append([entry("a")])


# ---- torn tails ----------------------------------------------------------------------------


@pytest.mark.parametrize("with_mark", [True, False])
def test_a_tail_torn_at_any_byte_is_repaired_and_reported(tmp_path: Path, with_mark: bool) -> None:
    """A record cut off by a crash was never acknowledged; the ones before it are safe."""
    ends = write(tmp_path, "first", "second")
    mark = (tmp_path / MARK_NAME).read_bytes()
    start, end = ends[1], write(tmp_path, "torn")[0]
    whole = (tmp_path / LOG_NAME).read_bytes()
    for cut in range(start + 1, end):
        (tmp_path / LOG_NAME).write_bytes(whole[:cut])
        (tmp_path / MARK_NAME).write_bytes(mark if with_mark else b"")

        assert texts(tmp_path) == ["first", "second"]
        with EventLog.open(tmp_path, clock, QuickDisk()) as log:
            repaired = log.repaired
            assert repaired is not None
            log.append([Entry(repaired, "director"), entry("new")])

        assert (repaired.offset, repaired.n_bytes) == (start, cut - start)
        assert Blobs(tmp_path).get(repaired.sha) == whole[start:cut]
        assert texts(tmp_path) == ["first", "second", "new"]


def test_a_tail_of_zeros_is_torn(tmp_path: Path) -> None:
    """File systems may record the new length before the data."""
    write(tmp_path, "a")
    with (tmp_path / LOG_NAME).open("ab") as file:
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
    with (tmp_path / LOG_NAME).open("ab") as file:
        file.write(b"torn")

    reports = []
    for _ in range(2):
        with EventLog.open(tmp_path, clock) as log:
            reports.append(log.repaired)

    assert isinstance(reports[0], LogRepaired)
    assert reports[0] == reports[1]


# ---- damage --------------------------------------------------------------------------------


def damaged(run: Path, change: Callable[[bytes, list[int]], bytes]) -> LogCorruptError:
    """Write five frames, change the file, and return the error that a reader gets."""
    ends = write(run, *"abcde")
    path = run / LOG_NAME
    path.write_bytes(change(path.read_bytes(), [frames.FILE_HEADER_BYTES, *ends]))
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
        start = frames.start(tmp_path, data[: frames.FILE_HEADER_BYTES])
        event = RunInterrupted(reason="!")
        body = codec.encode([Record(seq=2, time_ns=NOW, actor="director", event=event)])
        forged, _ = frames.pack(replace(start, offset=at[2], seq=2), body, 1)
        return data[: at[2]] + forged + data[at[3] :]

    error = damaged(tmp_path, forge)
    assert error.seq == 2
    assert "chain" in error.reason


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
    (tmp_path / "one" / LOG_NAME).replace(tmp_path / "two" / LOG_NAME)

    with pytest.raises(LogCorruptError, match="another log"):
        list(read(tmp_path / "two"))


def test_a_deleted_log_is_not_begun_anew(tmp_path: Path) -> None:
    """A fresh log in the place of a lost one would hide the loss."""
    write(tmp_path, "a")
    (tmp_path / LOG_NAME).unlink()

    with pytest.raises(LogCorruptError, match="gone"):
        EventLog.open(tmp_path, clock)


def forge(run: Path, body: bytes) -> None:
    """Put a log of one faultless frame with any body into the run folder."""
    write(run)
    path = run / LOG_NAME
    start = frames.start(path, path.read_bytes())
    data, _ = frames.pack(start, body, 1)
    path.write_bytes(path.read_bytes() + data)


def packed(seq: int, **event: str) -> bytes:
    """A body of one record with any event."""
    return bytes(msgpack.packb([(seq, 0, "a", event, ())]))


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    """A log from a newer version is not damaged, and the error must not say so."""
    forge(tmp_path, packed(0, kind="comet_seen"))

    with pytest.raises(LogSchemaError, match=r"'comet_seen'.*newer version"):
        list(read(tmp_path))


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    """Leaving it out would change what happened."""
    forge(tmp_path, packed(0, kind="run_interrupted", reason="x", mood="bad"))

    with pytest.raises(LogSchemaError, match="mood"):
        list(read(tmp_path))


def test_records_are_numbered_as_their_frame_says(tmp_path: Path) -> None:
    """Others refer to a record by its number."""
    forge(tmp_path, packed(1, kind="run_interrupted", reason="x"))

    with pytest.raises(LogCorruptError, match="own numbers"):
        list(read(tmp_path))


def test_a_body_in_another_encoding_is_not_called_damaged(tmp_path: Path) -> None:
    """Its checksum says that it is what was written."""
    forge(tmp_path, b"\xc1")

    with pytest.raises(LogSchemaError, match="not msgpack"):
        list(read(tmp_path))


@pytest.mark.parametrize(
    ("magic", "version", "error", "match"),
    [
        (b"PNG", frames.FORMAT, LogCorruptError, "not a log"),
        (frames.FILE_MAGIC, frames.FORMAT + 1, LogSchemaError, "unknown log format 2"),
    ],
)
def test_a_foreign_file_is_told_from_a_newer_log(
    tmp_path: Path, magic: bytes, version: int, error: type[LogError], match: str
) -> None:
    """One is to be restored, the other to be read with another version."""
    header = struct.pack("<8sI16s", magic, version, bytes(16))
    (tmp_path / LOG_NAME).write_bytes(header + struct.pack("<I", zlib.crc32(header)))

    with pytest.raises(error, match=match):
        list(read(tmp_path))


def test_a_damaged_frame_with_its_repetition_behind_it_is_no_torn_tail(tmp_path: Path) -> None:
    """The repetition was written later, so the damaged one had been finished."""
    (end,) = write(tmp_path, "a")
    path = tmp_path / LOG_NAME
    data = path.read_bytes()
    path.write_bytes(data[: end - 1] + b"?" + data[frames.FILE_HEADER_BYTES :])
    (tmp_path / MARK_NAME).unlink()

    with pytest.raises(LogCorruptError, match="body"):
        list(read(tmp_path))


# ---- faulty disks --------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_failed_write_poisons_the_log_and_loses_nothing(tmp_path: Path, code: int) -> None:
    """The half-written frame is taken back, and a new process goes on once there is space."""
    disk = FaultyDisk()
    with EventLog.open(tmp_path, clock, disk) as log:
        log.append([entry("a")])
        size = (tmp_path / LOG_NAME).stat().st_size
        arm(disk, code)
        with pytest.raises(LogWriteError, match="the write failed"):
            log.append([entry("b")])
        assert (tmp_path / LOG_NAME).stat().st_size == size
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
    with (tmp_path / LOG_NAME).open("ab") as file:
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

    assert [p.name for p in tmp_path.iterdir()] == ["LOCK"]
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
    path = tmp_path / LOG_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes(20) + whole[80:])
    search = frames.has_later_frame

    def search_and_finish(rest: bytes, at: frames.Position) -> bool:
        path.write_bytes(whole)
        return search(rest, at)

    monkeypatch.setattr(frames, "has_later_frame", search_and_finish)
    assert texts(tmp_path) == ["a", "b"]


# ---- one writer ----------------------------------------------------------------------------


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
    (tmp_path / LOG_NAME).write_bytes(b"not a log")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(LogCorruptError):
            EventLog.open(tmp_path, clock)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        LogMissingError(Path("run")),
        LogBusyError(Path("run"), "process 1"),
        LogWriteError(Path("run"), "full"),
        LogCorruptError(Path("run"), 40, 3, "checksum"),
        LogSchemaError(Path("run"), 40, 3, "unknown event kind 'x'"),
        BlobMissingError("ab"),
        BlobCorruptError("ab", "hash"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling_and_say_what_to_do(error: LogError) -> None:
    """They cross process borders, and people read them."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.args, str(copy)) == (type(error), error.args, str(error))
    assert "; " in str(error)
