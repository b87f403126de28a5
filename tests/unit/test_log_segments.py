"""Rules of segments: sealed when full, each bound to all before it, found out when touched."""

import errno
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from events import codec, cursor, frames, segments
from events.damage import survey
from events.errors import LogCorruptError, LogWriteError
from events.frames import Position
from events.log import EventLog, batches, holds_log, read, read_all, read_head
from events.reading import read_end
from events.sealing import read_back
from events.segments import (
    HEADER_BYTES,
    SEAL_BYTES,
    Contents,
    pack_header,
    pack_seal,
    segment_path,
    segments_of,
    take_header,
)
from events.tail import Tail
from events.vocabulary import Record, RunInterrupted
from events.watermark import MARK_NAME
from tests.support.crash_disk import QUICK
from tests.support.logs import FaultyDisk, arm, clock, entry, last_segment, texts, write


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment takes three records."""
    monkeypatch.setattr(segments, "MAX_RECORDS", 3)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of four segments, the last one open."""
    write(tmp_path / "run", *"abcdefghijk")
    return tmp_path / "run"


def refused(look: Callable[[Path], object], run: Path) -> LogCorruptError:
    with pytest.raises(LogCorruptError) as found:
        look(run)
    return found.value


def read_through(run: Path) -> None:
    list(read(run))


def check_through(run: Path) -> None:
    list(batches(run))


def open_to_write(run: Path) -> None:
    EventLog.open(run, clock, QUICK).close()


ALL = (read_through, check_through, open_to_write)


# ---- sealing -------------------------------------------------------------------------------


def test_a_full_segment_is_sealed_and_the_next_one_begun(run: Path) -> None:
    """Each is named after its first record, and ends with its seal and nothing behind."""
    assert segments_of(run) == [0, 3, 6, 9]
    ends = [frame.end for frame, _ in batches(run)]
    for first in segments_of(run)[:-1]:
        end = max(end.offset for end in ends if end.segment == first)
        assert segment_path(run, first).stat().st_size == end + SEAL_BYTES


def test_a_batch_is_never_divided(tmp_path: Path) -> None:
    """It is durable as a whole, so it is one frame of one segment."""
    with EventLog.open(tmp_path, clock, QUICK) as log:
        log.append([entry(text) for text in "abcde"])
        log.append([entry("f")])
    assert segments_of(tmp_path) == [0, 5]


def test_a_segment_of_many_bytes_is_full_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that one can be read into memory."""
    monkeypatch.setattr(segments, "MAX_BYTES", 1000)
    write(tmp_path, "a" * 1000, "b", "c")
    assert segments_of(tmp_path) == [0, 1]


def test_all_ways_of_reading_agree_on_a_log_of_several_segments(run: Path) -> None:
    """Sealed segments are read by their headers, checked ones by every frame."""
    records = list(read(run))
    assert texts(run) == list("abcdefghijk")
    assert [record for _, found in batches(run) for record in found] == records
    assert list(Tail(run).fresh()) == records
    assert read_all(run) == (records, read_head(run))
    found = survey(run)
    assert (found.damage, found.end.seq, found.head) == ([], 11, read_head(run))
    with EventLog.open(run, clock, QUICK) as log:
        assert log.head == found.head


def test_a_follower_goes_from_segment_to_segment(tmp_path: Path) -> None:
    """Whether it looks before a segment is sealed, or after."""
    with EventLog.open(tmp_path, clock, QUICK) as log:
        tail, seen = Tail(tmp_path), []
        for n in range(20):
            log.append([entry(str(n))])
            if n % 4 == 1:
                seen += list(tail.fresh())
        seen += list(tail.fresh())
    assert [r.seq for r in seen] == list(range(20))


def test_a_segment_that_is_sealed_between_two_looks_is_read_to_its_end(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader at the end of a live log must not take the writer's next step for damage."""
    looks = []

    with EventLog.open(run, clock, QUICK) as log:

        def late(run: Path) -> list[int]:
            looks.append(run)
            if len(looks) == 2:  # the reader has come to the end of the open segment
                for text in "lmno":
                    log.append([entry(text)])
            return segments_of(run)

        monkeypatch.setattr(cursor, "segments_of", late)
        found = [record.event for _, records in batches(run) for record in records]

    assert [e.reason for e in found if isinstance(e, RunInterrupted)] == [*"abcdefghijklmno"]


def test_the_zeros_of_a_spare_are_no_torn_tail(run: Path) -> None:
    """They are behind the records of every live run, and of one that was killed."""
    with EventLog.open(run, clock, QUICK) as log:
        log.append([entry("l")])
        log.append([entry("m")])
        log.append([entry("n")])

        assert last_segment(run).read_bytes().endswith(bytes(1 << 16))
        assert survey(run).torn_bytes == 0
        shutil.copytree(run, run.with_name("killed"))

    with EventLog.open(run.with_name("killed"), clock, QUICK) as log:
        assert log.repaired is None


def test_every_head_that_was_ever_printed_is_found_again(tmp_path: Path) -> None:
    """Even that of a run killed between a seal and the next segment."""
    heads = {}
    with EventLog.open(tmp_path, clock, QUICK) as log:
        for n in range(8):
            heads[log.head] = n
            log.append([entry("x")])
    for first in segments_of(tmp_path)[1:]:
        copy = Path(shutil.copytree(tmp_path, tmp_path.parent / f"copy {first}"))
        for later in segments_of(copy):
            if later >= first:
                segment_path(copy, later).unlink()
        (copy / MARK_NAME).unlink()
        heads[read_head(copy)] = first
    assert {head: survey(tmp_path, head).noted for head in heads} == heads


def test_a_sealed_last_segment_is_followed_by_the_next(run: Path) -> None:
    """A crash came between the seal and the creation of the segment after it."""
    segment_path(run, 9).unlink()
    (run / MARK_NAME).unlink()
    assert texts(run) == list("abcdefghi")
    with EventLog.open(run, clock, QUICK) as log:
        assert log.repaired is None
        log.append([entry("new")])
    assert segments_of(run) == [0, 3, 6, 9]
    assert texts(run) == [*"abcdefghi", "new"]


def test_a_seal_that_a_crash_cut_off_is_a_torn_tail(run: Path) -> None:
    """Nothing was appended after it."""
    segment_path(run, 9).unlink()
    (run / MARK_NAME).unlink()
    path = segment_path(run, 6)
    path.write_bytes(path.read_bytes()[:-10])
    assert texts(run) == list("abcdefghi")
    with EventLog.open(run, clock, QUICK) as log:
        assert log.repaired
        assert log.repaired.n_bytes == SEAL_BYTES - 10
        log.append([entry("new")])
    assert texts(run) == [*"abcdefghi", "new"]


def test_another_vocabulary_begins_a_segment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment says in its header how its records are to be read."""
    write(tmp_path, "a")
    monkeypatch.setattr(codec, "SCHEMA", other := bytes(range(32)))
    write(tmp_path, "b", "c")
    assert segments_of(tmp_path) == [0, 1]
    data = segment_path(tmp_path, 1).read_bytes()[:HEADER_BYTES]
    assert take_header(segment_path(tmp_path, 1), data, None)[0].schema == other
    assert texts(tmp_path) == list("abc")


def test_a_segment_without_records_takes_over_another_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one would have the same name."""
    write(tmp_path)
    monkeypatch.setattr(codec, "SCHEMA", bytes(range(32)))
    write(tmp_path, "a")
    assert segments_of(tmp_path) == [0]
    assert texts(tmp_path) == ["a"]


def test_a_disk_that_fills_up_while_a_segment_is_sealed_loses_nothing(tmp_path: Path) -> None:
    """The batch that was to begin the next segment is refused as a whole."""
    with EventLog.open(tmp_path, clock, disk := FaultyDisk()) as log:
        for text in "abc":
            log.append([entry(text)])
        arm(disk, errno.ENOSPC)
        with pytest.raises(LogWriteError, match="No space"):
            log.append([entry("d")])
    write(tmp_path, "e")
    assert texts(tmp_path) == list("abce")


# ---- damage --------------------------------------------------------------------------------


def test_there_is_a_log_where_there_is_any_segment(run: Path, tmp_path: Path) -> None:
    """Even if it is damaged: a new run must not begin there."""
    segment_path(run, 0).unlink()
    assert holds_log(run)
    assert not holds_log(tmp_path)
    assert not holds_log(tmp_path / "none")


@pytest.mark.parametrize("first", [0, 3, 6])
def test_a_removed_segment_is_missed_by_all(run: Path, first: int) -> None:
    """And named."""
    segment_path(run, first).unlink()
    for look in ALL:
        error = refused(look, run)
        assert (error.path, error.seq) == (segment_path(run, first), first)
        assert "missing" in error.reason


def test_a_removed_open_segment_is_missed_by_all(run: Path) -> None:
    """What was acknowledged in it is known."""
    segment_path(run, 9).unlink()
    for look in ALL:
        assert refused(look, run).seq == 9


def test_swapped_segments_are_found_by_all(run: Path) -> None:
    """Their headers say which they are."""
    one, two = segment_path(run, 3), segment_path(run, 6)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    for look in ALL:
        assert refused(look, run).path == one


@pytest.mark.parametrize("first", [0, 3, 6, 9])
def test_a_foreign_segment_is_found_by_all(run: Path, tmp_path: Path, first: int) -> None:
    """Even one of the same name and length."""
    write(tmp_path / "other", *"abcdefghijk")
    shutil.copy(segment_path(tmp_path / "other", first), segment_path(run, first))
    for look in ALL:
        refused(look, run)


def test_a_segment_rebuilt_by_somebody_is_found_by_all(run: Path) -> None:
    """All its hashes are right; the segment after it was bound to another one."""
    rebuilt = run.parent / "rebuilt"
    shutil.copytree(run, rebuilt)
    for first in (6, 9):
        segment_path(rebuilt, first).unlink()
    (rebuilt / MARK_NAME).unlink()
    path = segment_path(rebuilt, 3)
    path.write_bytes(path.read_bytes()[:HEADER_BYTES])
    write(rebuilt, *"DEFg")
    shutil.copy(path, segment_path(run, 3))
    for look in ALL:
        error = refused(look, run)
        assert error.path == segment_path(run, 6)
        assert "chain" in error.reason


def test_a_segment_that_belongs_nowhere_is_found_by_all(run: Path) -> None:
    """It is a copy of one under a number in between."""
    shutil.copy(segment_path(run, 3), segment_path(run, 4))
    for look in ALL:
        assert refused(look, run).path == segment_path(run, 4)


def test_bytes_after_a_seal_are_found_by_all(run: Path) -> None:
    """No crash leaves any before the next segment."""
    with segment_path(run, 3).open("ab") as file:
        file.write(bytes(8))
    for look in ALL:
        assert refused(look, run).path == segment_path(run, 3)


def test_a_sealed_segment_that_was_cut_is_found_by_all(run: Path) -> None:
    """Only the last segment can have a torn tail."""
    path = segment_path(run, 3)
    path.write_bytes(path.read_bytes()[:-SEAL_BYTES])
    for look in ALL:
        assert refused(look, run).path == path


def test_damage_inside_a_sealed_segment_is_found_by_reading_and_not_by_opening(run: Path) -> None:
    """A writer trusts seals, so that it is at work in time; the place is named by the others."""
    path = segment_path(run, 3)
    data = bytearray(path.read_bytes())
    second = [frame for frame, _ in batches(run) if frame.start.segment == 3][1]
    data[second.end.offset - 1] ^= 1
    path.write_bytes(data)

    open_to_write(run)
    for error in (refused(read_through, run), refused(check_through, run)):
        assert (error.path, error.offset, error.seq) == (path, second.start.offset, 4)
    (place,) = survey(run).damage
    assert (place.file, place.offset, place.seq) == (path, second.start.offset, 4)


def seal_wrongly(run: Path, wrong: Callable[[Contents], Contents]) -> Position:
    """Seal the last segment with something else than it holds; return the place of the seal."""
    at = read_end(run)[0].at
    with last_segment(run).open("ab") as file:
        file.write(pack_seal(at, wrong(read_back(run, at).contents), at.epoch)[0])
    return at


def test_a_seal_of_other_blobs_is_found_by_verify(tmp_path: Path) -> None:
    """The records name what it does not know of, or the reverse."""
    write(tmp_path, *"abc")
    at = seal_wrongly(tmp_path, lambda contents: contents._replace(n_blobs=1))
    (place,) = survey(tmp_path).damage
    assert (place.offset, place.seq) == (at.offset, 3)


def test_a_seal_of_another_file_is_found_by_all(tmp_path: Path) -> None:
    """Readers would believe it."""
    write(tmp_path, *"abc")
    at = seal_wrongly(tmp_path, lambda contents: contents._replace(digest=bytes(32)))
    for look in ALL:
        error = refused(look, tmp_path)
        assert (error.offset, error.seq) == (at.offset, 3)


def test_a_frame_of_a_replaced_writer_is_refused(run: Path) -> None:
    """Whoever had to stop has written on."""
    write(run, "l")
    end = read_end(run)[0].at
    stale = Record(seq=end.seq, time_ns=0, actor="a", event=RunInterrupted(reason="m"))
    with last_segment(run).open("ab") as file:
        file.write(frames.pack(end, codec.encode([stale]), 1, end.epoch - 1)[0])
    for look in ALL:
        error = refused(look, run)
        assert (error.offset, error.seq) == (end.offset, end.seq)
        assert "replaced" in error.reason


def test_a_segment_of_a_replaced_writer_is_refused(run: Path) -> None:
    """The same, where it was full."""
    write(run, "l")
    cursor = read_end(run)[0]
    seal, end = pack_seal(cursor.at, read_back(run, cursor.at).contents, cursor.at.epoch)
    with cursor.path.open("ab") as file:
        file.write(seal)
    stale = cursor.header._replace(first=end.seq, epoch=end.epoch - 1, previous=end.chain)
    segment_path(run, end.seq).write_bytes(pack_header(stale)[0])
    for look in ALL:
        error = refused(look, run)
        assert error.path == segment_path(run, end.seq)
        assert "replaced" in error.reason


def test_the_epochs_of_the_segments_never_fall(run: Path) -> None:
    """Each open for writing is a new one."""
    write(run, *"lmnop")
    epochs = [frame.end.epoch for frame, _ in batches(run)]
    assert all(a <= b for a, b in pairwise(epochs))
    assert set(epochs) == {1, 2}
