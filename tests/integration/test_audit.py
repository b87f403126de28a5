"""Audit finds what the evidence does not support, and names the place."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from decisions.audit import Finding, audit
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.errors import LogError
from events.log import Entry, EventLog, batches, read
from events.segments import segment_path
from events.vocabulary import (
    AnyEvent,
    CandidateAccepted,
    CandidateProposed,
    CandidateScreened,
    Designs,
    FactLearned,
    MeasurementRequested,
    PairsMeasured,
    ProgramsMeasured,
    Record,
    RoleReplied,
    RunResumed,
    RunStarted,
    Spread,
    TurnAssigned,
)
from scripts.audit import NOT_DERIVABLE, main
from tests.support.pack_files import spoil
from tests.support.runs import begin, campaign

Forge = Callable[[AnyEvent], AnyEvent]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the fake target that came to its end."""
    run = tmp_path_factory.mktemp("runs") / "fake-1"
    begin(run, campaign(max_candidates=12))
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be tampered with."""
    return shutil.copytree(finished, tmp_path / "run")


def findings(run: Path) -> list[Finding]:
    return list(audit(read(run), Blobs(run).get, LogError))


def forged(run: Path, kind: type, forge: Forge) -> tuple[Path, int]:
    """Write the run again, with its first event of ``kind`` replaced, in a log that is whole.

    This is what somebody who can rewrite the log, chain included, would do.
    """
    copy = run.with_name("forged")
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("log", "acknowledged", "LOCK"))
    records = list(read(run))
    at = next(r.seq for r in records if isinstance(r.event, kind))
    times: Iterator[int] = iter([r.time_ns for r in records])
    with EventLog.open(copy, lambda: next(times)) as log:
        for r in records:
            event = forge(r.event) if r.seq == at else r.event
            log.append([Entry(event, r.actor, r.because)])
    return copy, at


def test_every_record_of_an_honest_run_is_supported(run: Path) -> None:
    """The live run and the audit ask the same functions, so they agree to the last bit."""
    assert findings(run) == []
    assert main([str(run)]) == 0


def test_an_accept_whose_evidence_does_not_support_it_is_found(run: Path) -> None:
    """Capital, effect and interval are re-derived from the coins and times."""

    def richer(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, CandidateAccepted)
        return event.model_copy(update={"effect": event.effect * 1.0000001})

    copy, at = forged(run, CandidateAccepted, richer)

    assert at in [f.seq for f in findings(copy)]
    assert main([str(copy)]) == 1


def test_a_forged_pair_is_found_by_its_raw_samples(run: Path) -> None:
    """A pair is the medians of launches that are kept, so it cannot be bettered alone."""

    def faster(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, PairsMeasured)
        pair = event.pairs[0]
        better = pair.model_copy(update={"candidate_s": pair.candidate_s * 0.9})
        return event.model_copy(update={"pairs": (better, *event.pairs[1:])})

    copy, at = forged(run, PairsMeasured, faster)

    assert (at, "the pairs are not the medians of the raw samples") in [
        (f.seq, f.problem) for f in findings(copy)
    ]


def test_a_chosen_coin_is_found(run: Path) -> None:
    """Coins come from the secret seed; whoever flips one has to change the seed."""

    def flipped(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, MeasurementRequested)
        return event.model_copy(update={"coins": tuple(not coin for coin in event.coins)})

    copy, at = forged(run, MeasurementRequested, flipped)

    assert any(f.seq == at and "coins" in f.problem for f in findings(copy))


def test_a_screening_verdict_against_its_evidence_is_found(run: Path) -> None:
    """The gate judges the fixtures' own margins."""

    def passed(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, CandidateScreened)
        return event.model_copy(update={"passed": not event.passed})

    copy, at = forged(run, CandidateScreened, passed)

    assert at in [f.seq for f in findings(copy)]


@pytest.mark.parametrize(
    "other", [{"hypothesis": "an idea nobody had"}, {"move": "x"}, {"expected_speedup": 9.0}]
)
def test_a_reply_that_says_something_else_is_found(run: Path, other: dict[str, Any]) -> None:
    """Every field of what a role proposed is read again from its whole reply."""

    def told(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, RoleReplied)
        assert isinstance(event.outcome, Designs)
        first, *rest = event.outcome.designs
        designs = (first.model_copy(update=other), *rest)
        outcome = event.outcome.model_copy(update={"designs": designs})
        return event.model_copy(update={"outcome": outcome})

    copy, at = forged(run, RoleReplied, told)

    assert (at, "the reply does not say what it was read as") in [
        (f.seq, f.problem) for f in findings(copy)
    ]


@pytest.mark.parametrize(
    "samples", [b"[1]", b"[", b'[{"arm": 1e999, "launches_s": [], "probe_s": 0}]', b"[" * 100_000]
)
def test_samples_that_cannot_be_read_are_a_finding(run: Path, samples: bytes) -> None:
    """Audit looks at what somebody else may have written, and goes on."""
    sha = Blobs(run).put(samples)
    copy, at = forged(run, PairsMeasured, lambda event: event.model_copy(update={"samples": sha}))

    assert any(f.seq == at and "samples cannot be used" in f.problem for f in findings(copy))


def test_a_launch_without_times_is_a_finding(run: Path) -> None:
    """There is no median of nothing."""
    first = next(r.event for r in read(run) if isinstance(r.event, PairsMeasured))
    runs = json.loads(Blobs(run).get(first.samples))
    runs[2]["launches_s"] = []
    sha = Blobs(run).put(json.dumps(runs).encode())
    copy, at = forged(run, PairsMeasured, lambda event: event.model_copy(update={"samples": sha}))

    assert any(f.seq == at and "samples cannot be used" in f.problem for f in findings(copy))


def test_a_request_about_nothing_is_a_finding(run: Path) -> None:
    """A parent that does not exist cannot be looked up, and is told."""

    def orphaned(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, TurnAssigned)
        return event.model_copy(update={"parent": 999})

    copy, at = forged(run, TurnAssigned, orphaned)

    assert at in [f.seq for f in findings(copy)]
    assert any("999" in f.problem for f in findings(copy) if f.seq > at)


def test_fencing_tokens_may_begin_again_with_a_resumption(run: Path) -> None:
    """The lease lives in a folder that a restarted machine empties."""
    records = list(read(run))
    n = next(i for i, r in enumerate(records) if isinstance(r.event, PairsMeasured)) + 1
    mark = RunResumed(versions={}, rules=dict(IN_FORCE), toolchain={"compiler": "fake 1.0"})
    records.insert(n, Record(seq=n, time_ns=0, actor="director", event=mark))
    later = False
    for i, r in enumerate(records):
        if later and isinstance(r.event, PairsMeasured | ProgramsMeasured):
            event = r.event.model_copy(update={"token": r.event.token - 1})
            records[i] = r._replace(event=event)
        later = later or i == n

    assert not any("lease token" in f.problem for f in audit(records, Blobs(run).get, LogError))


def test_a_source_that_no_reply_holds_is_found(run: Path) -> None:
    """A candidate's source is the draft of the reply that it rests on."""
    records = list(read(run))
    proposals = [r.event for r in records if isinstance(r.event, CandidateProposed)]
    baseline, other = proposals[0].source, proposals[-1].source

    def swapped(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, CandidateProposed)
        return event.model_copy(update={"source": other})

    assert baseline != other
    copy, at = forged(run, CandidateProposed, swapped)
    assert at in [f.seq for f in findings(copy)]


def test_a_tampered_blob_is_found(run: Path) -> None:
    """Every blob that an event names is hashed again."""
    record = next(r for r in read(run) if isinstance(r.event, PairsMeasured))
    assert isinstance(record.event, PairsMeasured)
    spoil(run, record.event.samples)

    assert [f.seq for f in findings(run)] == [record.seq]
    assert main([str(run)]) == 1


def test_a_missing_blob_is_found(run: Path) -> None:
    """Evidence that is gone is not evidence."""
    record = next(r for r in read(run) if isinstance(r.event, RoleReplied))
    assert isinstance(record.event, RoleReplied)
    Blobs(run).remove_all([record.event.reply])

    assert record.seq in [f.seq for f in findings(run)]


def frame_bytes(run: Path) -> list[bytes]:
    """The log file in pieces: its header, then each frame."""
    data = segment_path(run, 0).read_bytes()
    ends = [0, *(frame.start.offset for frame, _ in batches(run)), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize("what", ["one byte", "one record removed", "two swapped"])
def test_a_tampered_log_is_found_and_located(
    run: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hash chain holds every record in its place."""
    pieces = frame_bytes(run)
    middle = len(pieces) // 2
    if what == "one byte":
        damaged = bytearray(pieces[middle])
        damaged[len(damaged) // 2] ^= 1
        pieces[middle] = bytes(damaged)
    elif what == "one record removed":
        del pieces[middle]
    else:
        pieces[middle : middle + 2] = reversed(pieces[middle : middle + 2])
    segment_path(run, 0).write_bytes(b"".join(pieces))

    assert main([str(run)]) == 1
    assert f"record {middle - 1}" in capsys.readouterr().err


def test_a_fact_without_a_request_is_found(run: Path) -> None:
    """Whatever an actor says must answer what it was asked."""
    records = list(read(run))
    fact = next(r for r in records if isinstance(r.event, FactLearned))
    stray = Record(
        seq=len(records), time_ns=0, actor="keeper", because=fact.because, event=fact.event
    )

    found = list(audit([*records, stray], Blobs(run).get, LogError))

    assert (stray.seq, "answers no request that is waiting") in [(f.seq, f.problem) for f in found]


def test_figures_that_give_no_fact_are_found(run: Path) -> None:
    """A log that is whole may hold any number; audit must name the record, not fall over it."""
    at_once = Spread(low=0.0, median=0.0, high=0.0)

    def timeless(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, ProgramsMeasured)
        return event.model_copy(update={"times_s": dict.fromkeys(event.times_s, at_once)})

    copy, at = forged(run, ProgramsMeasured, timeless)

    assert at in [f.seq for f in findings(copy)]


def test_audit_json_is_for_machines(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object: the head, what was derived per kind, the rules, the findings."""
    assert main([str(run), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)

    assert (said["supported"], said["findings"]) == (True, [])
    assert said["sorts"] == {"unsupported": 0, "pruned": 0, "not_derivable": 0}
    assert said["rules"] == [{"since": 0, "rules": IN_FORCE, "missing": []}]
    assert len(said["head"]) == 64
    counts = Counter(record.event.kind for record in read(run))
    assert said["kinds"] == {kind: {"records": n, "derived": n} for kind, n in counts.items()}


def test_audit_json_counts_what_is_not_derived(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine need not read sentences to know what kind of trouble there is."""

    def of_the_future(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, RunStarted)
        return event.model_copy(update={"rules": {**IN_FORCE, "verdicts.verdict": 99}})

    copy, _ = forged(run, RunStarted, of_the_future)
    assert main([str(copy), "--json"]) == NOT_DERIVABLE
    said = json.loads(capsys.readouterr().out)

    accepted = said["kinds"]["candidate_accepted"]
    assert (accepted["derived"], accepted["records"] > 0) == (0, True)
    assert said["sorts"]["not_derivable"] == len(said["findings"])
    assert said["rules"][0]["missing"] == ["rule verdicts.verdict version 99"]
    assert main([str(copy)]) == NOT_DERIVABLE
    assert "which nobody can derive with what is at hand" in capsys.readouterr().out


def test_an_unknown_subject_is_the_users_mistake(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names what there is, and exit code 2."""
    assert main([str(run), "gamma"]) == 2
    assert "kernels: alpha, beta" in capsys.readouterr().err
