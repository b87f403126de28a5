"""Rules of appending: what is acknowledged comes back, and what could not be read is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from events import codec
from events.errors import LogMissingError, LogWriteError
from events.log import Entry, EventLog, read, read_all, read_head
from events.segments import segment_path
from events.vocabulary import MeasurementRequested, PairsMeasured, RunInterrupted, Spend
from tests.support.logs import NOW, clock, entry, texts, write


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
        programs={"β": sha},
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
        size = segment_path(tmp_path, 0).stat().st_size
        assert log.append([]) == ()
        assert segment_path(tmp_path, 0).stat().st_size == size


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
