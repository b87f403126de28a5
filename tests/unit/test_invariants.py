"""Each thing that must hold is planted broken once, and found."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from events.campaign import Budget
from events.log import read
from events.projections.state import replay
from events.vocabulary import (
    AnyEvent,
    CandidateAccepted,
    CandidateProposed,
    CandidateScreened,
    MeasurementRequested,
    PairsMeasured,
    Record,
    RunStarted,
    Spend,
    TurnAssigned,
)
from sim.invariants import Invariants, ViolationError
from tests.support.runs import begin, campaign


@cache
def good() -> tuple[Record, ...]:
    """The records of a run in which everything holds."""
    with TemporaryDirectory() as folder:
        begin(Path(folder), campaign())
        return tuple(read(Path(folder)))


def follow(records: Sequence[Record]) -> Invariants:
    invariants = Invariants()
    for record in records:
        invariants.take(record)
    return invariants


def event(record: Record, **changes: Any) -> Record:
    """The record with another event."""
    return record._replace(event=record.event.model_copy(update=changes))


def first(kind: type[AnyEvent], where: Callable[[Any], bool] = lambda event: True) -> int:
    """Number of the first record of a kind."""
    return next(r.seq for r in good() if isinstance(r.event, kind) and where(r.event))


def broken(seq: int, record: Record) -> str:
    """What is said when one record stands in the place of another."""
    invariants = follow(good()[:seq])
    with pytest.raises(ViolationError) as caught:
        invariants.take(record)
    assert caught.value.seq == record.seq
    return f"{caught.value.rule}: {caught.value.found}"


def test_nothing_is_found_in_a_good_run() -> None:
    """Or every simulation would stop."""
    invariants = follow(good())

    invariants.agree(replay(good()))
    invariants.reread(good())
    assert invariants.state.finished is not None


def test_a_gap_in_the_numbers() -> None:
    """A record that was dropped on its way is missed at once."""
    said = broken(10, good()[11])
    assert said.startswith("numbers follow on each other")


def test_a_step_on_a_version_that_no_device_has_run() -> None:
    """A chain of changes that only the static model liked may be wrong from its first link on."""
    seq = first(CandidateProposed, lambda e: e.form == "step")
    said = broken(seq, event(good()[seq], parent=2))
    assert said == "a parent of steps was correct on the device: c2 was not yet"


def test_a_second_reply() -> None:
    """A director that takes an answer twice counts its evidence twice."""
    seq = first(PairsMeasured)
    again = good()[seq]._replace(seq=seq + 1)
    assert broken(seq + 1, again).startswith("a request has one reply: pairs_measured")


def test_two_device_jobs_at_a_time() -> None:
    """They would measure each other."""
    seq = first(MeasurementRequested)
    second = good()[seq]._replace(seq=seq + 1)
    assert broken(seq + 1, second).startswith("the device has one job at a time")


def test_a_device_job_that_began_before_the_last_one_was_over() -> None:
    """A reply tells when its job began."""
    seqs = [r.seq for r in good() if isinstance(r.event, PairsMeasured)]
    early = event(good()[seqs[1]], device_s=3600.0)
    said = broken(seqs[1], early)
    assert said.startswith("a job begins when the last one is over: a job began 3")


def test_a_token_that_does_not_grow() -> None:
    """A job under an old lease has run beside another one."""
    seqs = [r.seq for r in good() if isinstance(r.event, PairsMeasured)]
    stale = event(good()[seqs[1]], token=1)
    assert broken(seqs[1], stale) == "tokens of the lease grow: 1 after 1"


def accepts() -> Iterator[Record]:
    """Accepts that no evidence supports: each leaves out another part of it."""
    record = good()[first(CandidateAccepted)]
    accepted = record.event
    assert isinstance(accepted, CandidateAccepted)
    refused = first(CandidateScreened, lambda e: not e.passed)
    named = good()[refused].event
    assert isinstance(named, CandidateScreened)
    yield event(record, candidate=named.candidate)
    yield event(record, incumbent=accepted.candidate)
    yield event(record, n_pairs=accepted.n_pairs + 1)
    yield record._replace(because=record.because[:1])


@pytest.mark.parametrize("number", range(4))
def test_an_accept_without_its_evidence(number: int) -> None:
    """Screening, the opponent, the pairs and the records that hold them belong to it."""
    words = ("never passed screening", "is not the best version", "pairs in", "cited")
    said = broken(first(CandidateAccepted), list(accepts())[number])
    assert said.startswith("no accept without evidence")
    assert words[number] in said


def test_an_accept_of_wrong_outputs() -> None:
    """A margin above one on the device is wrong, however fast."""
    seq = first(CandidateAccepted)
    cited = good()[seq].because[-1]
    wrong = [event(r, candidate_margin=2.0) if r.seq == cited else r for r in good()[:seq]]
    with pytest.raises(ViolationError, match="its outputs were wrong on the device"):
        follow([*wrong, good()[seq]])


def test_a_best_version_that_no_accept_has_made() -> None:
    """A projection that changes it otherwise is found at the next decision."""
    seq = first(CandidateScreened, lambda e: not e.passed)
    invariants = follow(good()[:seq])
    invariants.state.tree.branches["alpha"].incumbent = 99
    with pytest.raises(ViolationError, match="one best version per kernel: c99"):
        invariants.take(good()[seq])


def limited(**limits: float) -> list[Record]:
    """The good run, as if its campaign had had a budget."""
    start, *rest = good()
    assert isinstance(start.event, RunStarted)
    budget = Budget.model_validate(limits)
    return [event(start, campaign=campaign().model_copy(update={"budget": budget})), *rest]


def spaced(records: Sequence[Record], every_s: int) -> list[Record]:
    """The records with that much time between each two."""
    return [r._replace(time_ns=r.seq * every_s * 10**9) for r in records]


def test_an_overspent_budget() -> None:
    """A job that was never to begin, since what it reserves goes beyond the budget."""
    records = limited(device_s=100.0)
    for record in good():
        if isinstance(record.event, PairsMeasured):
            records[record.seq] = event(record, device_s=20.0)
        if isinstance(record.event, MeasurementRequested):
            records[record.seq] = event(record, reserved=Spend(device_s=20.0))
    with pytest.raises(ViolationError, match="no budget is overspent: device_s 120"):
        follow(spaced(records, 60))


def test_what_a_time_limit_ended_is_not_overspent() -> None:
    """A hung job takes more than was reserved for it, and nobody could have known."""
    records = limited(device_s=1000.0)
    seq = first(PairsMeasured)
    records[seq] = event(records[seq], device_s=2000.0)
    follow(spaced(records, 3600))


def test_a_turn_after_the_time_is_up() -> None:
    """The wall time of a run closes its search."""
    with pytest.raises(ViolationError, match="no budget is overspent: a turn at") as caught:
        follow(spaced(limited(wall_s=50.0), 1))
    assert isinstance(good()[caught.value.seq].event, TurnAssigned)


def test_a_live_state_that_differs_from_its_records() -> None:
    """A decision that changes what it looks at is found within 500 records."""
    invariants = follow(good())
    live = replay(good())
    live.desk.n_turns += 1
    with pytest.raises(ViolationError, match="replay equals the live state"):
        invariants.agree(live)


def test_records_that_were_acknowledged_and_are_gone() -> None:
    """Or come back changed, or are just there all the same."""
    invariants = follow(good()[:20])
    with pytest.raises(ViolationError, match="record 19: nothing acknowledged is lost"):
        invariants.reread(good()[:19])
    with pytest.raises(ViolationError, match="record 3: nothing acknowledged is lost"):
        invariants.reread([*good()[:3], event(good()[3], kind="x"), *good()[4:20]])
    invariants.reread(good()[:25])
    assert len(invariants.records) == 25


def test_a_violation_survives_pickling() -> None:
    """It may come from another process."""
    error = ViolationError(7, "a rule", "a finding")
    assert str(pickle.loads(pickle.dumps(error))) == "record 7: a rule: a finding"
