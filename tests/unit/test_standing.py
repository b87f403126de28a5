"""Where a record may stand, whatever the rules are."""

from collections.abc import Callable
from itertools import takewhile

import pytest

from decisions.standing import misplaced
from events.campaign import Budget
from events.projections.spending import Amount
from events.projections.state import State, replay
from events.vocabulary import (
    JobFailed,
    MeasurementRequested,
    PairsMeasured,
    Record,
    RequestLost,
    RoleReplied,
    RunInterrupted,
    RunResumed,
    Spend,
    TurnAssigned,
)
from tests.support.pinned import recorded

RECORDS = recorded()


def before(is_it: Callable[[Record], bool]) -> tuple[State, Record]:
    """The state before the first such record, and that record."""
    at = next(i for i, record in enumerate(RECORDS) if is_it(record))
    return replay(RECORDS[:at]), RECORDS[at]


def after(event: type) -> State:
    return replay([*takewhile(lambda r: not isinstance(r.event, event), RECORDS), _first(event)])


def _first(event: type) -> Record:
    return next(record for record in RECORDS if isinstance(record.event, event))


def test_an_honest_run_stands_as_it_is() -> None:
    """Losses, a stop, a resumption, a repair and a prune are all in order."""
    state = State()
    for record in RECORDS:
        assert not list(misplaced(state, record)), record
        state.apply(record)


def test_a_job_that_ran_when_the_run_stopped_is_lost_first() -> None:
    """Nobody has seen its readings, and nobody may choose to believe them later."""
    state, lost = before(lambda r: isinstance(r.event, RequestLost) and r.event.by == "resume")
    job = state.pending[lost.because[0]]
    assert isinstance(job, MeasurementRequested)
    late = JobFailed(job=job.job, arm="device", reason="late", device_s=0.0)

    problems = list(misplaced(state, lost._replace(event=late, actor="device")))
    assert problems == ["the device job that ran when the run stopped was not marked as lost"]


def test_only_a_resumption_loses_by_resumption() -> None:
    """Such a loss counts against nobody, so it must not excuse an actor that keeps dying."""
    state, lost = before(lambda r: isinstance(r.event, RequestLost) and r.event.by == "mailbox")
    excused = lost.event.model_copy(update={"by": "resume"})

    assert "lost by a resumption that did not lose it" in misplaced(
        state, lost._replace(event=excused, actor="director")
    )


def test_after_a_stop_comes_a_resumption() -> None:
    """What an actor says to nobody is on no record."""
    state = after(RunInterrupted)
    reply = next(r for r in RECORDS if isinstance(r.event, PairsMeasured))

    assert "the run had stopped and was not resumed" in misplaced(state, reply)


@pytest.mark.parametrize("event", [PairsMeasured, RunResumed, TurnAssigned])
def test_nothing_follows_the_end_but_what_an_operator_does(event: type) -> None:
    """A run that has given its figures gives no others."""
    assert "the run had finished" in misplaced(replay(RECORDS), _first(event))


def test_who_was_not_asked_cannot_answer() -> None:
    """Replies come from the actor that was asked, everything else from the director."""
    state, reply = before(lambda r: isinstance(r.event, RoleReplied) and r.actor == "architect")
    assert "architect was asked, not reviewer" in misplaced(state, reply._replace(actor="reviewer"))
    state, turn = before(lambda r: isinstance(r.event, TurnAssigned))
    assert "it is not for architect to write" in misplaced(state, turn._replace(actor="architect"))


def test_a_reservation_stays_within_the_limits() -> None:
    """A budget is held by what is settled and reserved together, whichever rule asks for more."""
    state, turn = before(lambda r: isinstance(r.event, TurnAssigned) and r.event.turn == 2)
    state.spending.limits = Budget(tokens=100)
    state.spending.settled = Amount(tokens=60)
    state.spending.reserved.clear()
    wanted = turn.event.model_copy(update={"reserved": Spend(tokens=41)})
    fits = turn.event.model_copy(update={"reserved": Spend(tokens=40)})

    assert list(misplaced(state, turn._replace(event=wanted))) == [
        "tokens is overdrawn: 60 and 41 are more than 100"
    ]
    assert not list(misplaced(state, turn._replace(event=fits)))
