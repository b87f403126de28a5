"""Laws of the log: whatever is appended comes back, and no damage goes unnoticed."""

import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import segments
from events.blobs import Blobs
from events.errors import LogError
from events.log import Entry, EventLog, read, read_head
from events.segments import segment_path
from events.vocabulary import Record, RunInterrupted
from events.watermark import MARK_NAME
from tests.support.crash_disk import QUICK

N_FLIPS = 2500


def batch(texts: list[str]) -> list[Entry]:
    return [Entry(RunInterrupted(reason=text), "director") for text in texts]


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(st.text(max_size=30), max_size=4), max_size=6),
    max_records=st.integers(1, 9),
    data=st.data(),
)
def test_any_batches_over_any_reopens_come_back(
    batches: list[list[str]], max_records: int, data: st.DataObject
) -> None:
    """The log is the concatenation of what was appended, however often reopened and divided."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "MAX_RECORDS", max_records)
        run = Path(folder)
        log = EventLog.open(run, lambda: 0, QUICK)
        appended: list[Record] = []
        for texts in batches:
            if data.draw(st.booleans(), label="reopen"):
                log.close()
                log = EventLog.open(run, lambda: 0, QUICK)
            appended += log.append(batch(texts))
        log.close()

        assert list(read(run)) == appended
        assert [r.seq for r in appended] == list(range(sum(map(len, batches))))
        assert read_head(run) == log.head


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """A run of twelve batches."""
    run = tmp_path_factory.mktemp("run")
    records: list[Record] = []
    with EventLog.open(run, lambda: 0, QUICK) as log:
        for n in range(12):
            records += log.append(batch([f"{n}.{k}" * n for k in range(1 + n % 3)]))
    return run, records


def is_refused(run: Path, records: list[Record]) -> bool:
    """Whether a reader is refused; otherwise it must get all records, and never a wrong one."""
    seen = []
    try:
        for record in read(run):
            seen.append(record)
    except LogError:
        assert seen == records[: len(seen)]
        return True
    assert seen == records
    return False


def flip(path: Path, bit: int) -> None:
    """Flip one bit in place; a second flip undoes it."""
    with path.open("r+b", buffering=0) as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def test_no_flipped_bit_is_silent(history: tuple[Path, list[Record]]) -> None:
    """With the mark beside it, a reader refuses a log with any bit flipped."""
    run, records = history
    path = segment_path(run, 0)
    rng = np.random.default_rng(1)
    for bit in rng.choice(8 * path.stat().st_size, N_FLIPS, replace=False).tolist():
        flip(path, bit)
        assert is_refused(run, records)
        flip(path, bit)

    assert not is_refused(run, records)


def test_no_flipped_bit_is_silent_without_a_mark_either(
    history: tuple[Path, list[Record]], tmp_path: Path
) -> None:
    """Opening refuses, or reports exactly the bytes of the last frame as torn."""
    source, records = history
    good = segment_path(source, 0).read_bytes()
    path = segment_path(tmp_path, 0)
    path.parent.mkdir()
    rng = np.random.default_rng(2)
    n_reported = 0
    for bit in rng.choice(8 * len(good), N_FLIPS // 5, replace=False).tolist():
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        (tmp_path / MARK_NAME).unlink(missing_ok=True)
        with suppress(LogError), EventLog.open(tmp_path, lambda: 0, QUICK) as log:
            assert log.repaired is not None
            kept = Blobs(tmp_path).get(log.repaired.sha)
            assert kept == bytes(bad[log.repaired.offset :])
            assert log.repaired.offset <= bit // 8
            n_reported += 1

    assert 0 < n_reported < N_FLIPS // 10
    assert len(records) == 24


def test_a_flipped_bit_of_the_mark_does_no_harm(history: tuple[Path, list[Record]]) -> None:
    """The mark only adds knowledge; damaged, it adds none."""
    run, records = history
    path = run / MARK_NAME
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        assert not is_refused(run, records)
        flip(path, bit)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_cut_or_splice_is_silent(
    history: tuple[Path, list[Record]], data: st.DataObject
) -> None:
    """Removing or doubling any range of bytes is refused."""
    run, records = history
    path = segment_path(run, 0)
    good = path.read_bytes()
    places = st.lists(st.integers(0, len(good)), min_size=2, max_size=2, unique=True)
    a, b = sorted(data.draw(places))
    doubled = data.draw(st.booleans(), label="doubled")
    try:
        path.write_bytes(good[:b] + good[a:] if doubled else good[:a] + good[b:])
        # What is doubled at the very end looks torn, unless it is a whole frame.
        assert is_refused(run, records) or (doubled and b == len(good))
    finally:
        path.write_bytes(good)


@settings(max_examples=200, deadline=None)
@given(mixed=st.lists(st.booleans(), min_size=1, max_size=8), size=st.integers(0, 8))
def test_any_mix_of_old_and_new_sectors_of_the_last_write_is_a_torn_tail(
    history: tuple[Path, list[Record]], mixed: list[bool], size: int
) -> None:
    """A power cut may keep any part of an unsynced write; nothing acknowledged depends on it."""
    source, records = history
    sector = 64
    with TemporaryDirectory() as folder:
        run = Path(folder)
        shutil.copytree(source, run, dirs_exist_ok=True)
        with EventLog.open(run, lambda: 0, QUICK) as log:
            before = segment_path(run, 0).stat().st_size
            mark = (run / MARK_NAME).read_bytes()
            new = log.append(batch(["in flight" * 20]))
        whole = segment_path(run, 0).read_bytes()
        frame = bytearray(whole[before:])
        for k in range(0, len(frame), sector):
            if not mixed[k // sector % len(mixed)]:
                frame[k : k + sector] = bytes(len(frame[k : k + sector]))
        kept = bytes(frame[: len(frame) * size // 8])
        segment_path(run, 0).write_bytes(whole[:before] + kept)
        (run / MARK_NAME).write_bytes(mark)

        complete = kept == whole[before:]
        with EventLog.open(run, lambda: 0, QUICK) as log:
            assert (log.repaired is not None) == (bool(kept) and not complete)
        assert list(read(run)) == [*records, *(new if complete else ())]
