"""What can be ordered when, and what follows from it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from decisions.audit import audit
from decisions.orders import refusal
from decisions.plan import decide
from events.blobs import Blobs
from events.errors import LogError
from events.log import read
from events.projections.state import State, replay
from events.projections.tree import Status
from events.vocabulary import (
    AnyEvent,
    BudgetChanged,
    CandidateAccepted,
    CandidateProposed,
    CandidateVetoed,
    CandidateWithdrawn,
    LimitChange,
    MeasurementRequested,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    PairsMeasured,
    Record,
    Reply,
    Request,
    RequestLost,
    Resource,
    RoleReplied,
    RunFinished,
    RunInterrupted,
    ScreeningRequested,
)
from tests.support.operated import (
    EVERYTHING,
    Operator,
    Plan,
    go_on,
    hint,
    name,
    pause,
    veto,
)  # fmt: skip
from tests.support.runs import begin, campaign

CALM = campaign()


@cache
def calm() -> tuple[Record, ...]:
    """The records of a run without an operator."""
    with TemporaryDirectory() as folder:
        begin(Path(folder), CALM)
        return tuple(read(Path(folder)))


def until(kind: type[AnyEvent], where: Callable[[Any], bool] = lambda event: True) -> State:
    """The state of the calm run right after its first event of a kind."""
    state = State()
    for record in calm():
        state.apply(record)
        if isinstance(record.event, kind) and where(record.event):
            return state
    raise LookupError(kind.__name__)


def is_test(job: MeasurementRequested) -> bool:
    return job.purpose == "test"


def of_search(request: ScreeningRequested) -> bool:
    return request.candidate > 6  # after baselines and canaries


def operated(folder: Path, *plans: Plan) -> list[Record]:
    """The records of a run with an operator, to its end or a stop."""
    begin(folder, CALM, orders=Operator(*plans))
    return list(read(folder))


def apply(state: State, *events: AnyEvent) -> State:
    """The state after more events of the operator or the director."""
    for event in events:
        state.apply(Record(state.seq + 1, state.spending.last_ns or 0, "any", event))
    return state


def change(resource: Resource, amount: float, *, by: bool = False) -> BudgetChanged:
    changes = (LimitChange(resource=resource, amount=amount, is_relative=by),)
    return BudgetChanged(order=name(9), changes=changes)


def told(candidate: int) -> CandidateVetoed:
    return CandidateVetoed(order=name(4), candidate=candidate, reason="odd")


def followed(state: State) -> AnyEvent | None:
    """What is due now."""
    due = decide(state)
    return None if due is None else due.event


# ---- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (OperatorContinued(order=name(1)), "the run is not paused"),
        (OperatorHinted(order=name(1), kernel="gamma", text="x"), "there are: alpha, beta"),
        (told(1), "c1 is a baseline; only what the search has proposed can be vetoed"),
        (told(2), "c2 is a canary wrong"),
        (told(10**30), "the last candidate is c"),
        (change("tokens", 3, by=True), "tokens has no limit to change by +3; give it one first"),
        (change("tokens", 2.5), "tokens: Input should be a valid integer"),
        (change("wall_s", -1), "wall_s: Input should be greater than 0"),
        (change("device_s", 1e-9), "device_s cannot be 1e-09: "),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(order: Order, why: str) -> None:
    """The operator reads it, so it says what there is instead."""
    state = until(CandidateAccepted)
    state.spending.settled.device_s = 5.0
    assert why in (refusal(state, order) or "")


def test_an_order_is_taken_once_and_none_by_a_finished_run() -> None:
    """A crash between its append and the end of its message gives it twice."""
    state = apply(until(CandidateAccepted), OperatorPaused(order=name(2)))
    assert "taken this order before" in (refusal(state, OperatorPaused(order=name(2))) or "")
    assert "paused already" in (refusal(state, OperatorPaused(order=name(3))) or "")
    ended = refusal(until(RunFinished), RunInterrupted(reason="", order=name(1)))
    assert ended == "the run has finished"


def test_a_limit_may_fall_to_what_is_spent_and_no_further() -> None:
    """Final pairs and work under way are paid for whatever the operator wants."""
    state = until(MeasurementRequested, is_test)
    state.ledger.of("alpha").job_s = 2.0
    committed = state.spending.committed.device_s
    kept = 2.0 * 3  # one bound job, two jobs of three final pairs

    assert refusal(state, change("device_s", committed + kept + 0.1)) is None
    why = refusal(state, change("device_s", committed + kept - 0.1)) or ""
    assert f"{committed + kept:g} are spent, reserved for work under way, or kept" in why


def test_relative_changes_add_up_and_absolute_ones_replace() -> None:
    """Two operators who add three hours each have added six."""
    state = apply(
        until(CandidateAccepted),
        change("device_s", 100.0), change("device_s", 20.0, by=True),
        change("device_s", -5.0, by=True), change("model_calls", 7.0),
    )  # fmt: skip
    assert (state.spending.limits.device_s, state.spending.limits.model_calls) == (115.0, 7)


def test_a_limit_holds_from_there_on() -> None:
    """The next decision looks at it."""
    state = until(CandidateAccepted)
    while (due := decide(state)) is not None:
        state.apply(Record(state.seq + 1, 0, "director", due.event, due.because))
    assert state.closed is None
    apply(state, change("wall_s", state.spending.wall_s))
    assert getattr(followed(state), "reason", None) == "budget: wall_s"


# ---- pause ---------------------------------------------------------------------------------


def test_a_paused_run_finishes_what_is_under_way_and_asks_for_nothing(tmp_path: Path) -> None:
    """Verdicts are no work; what was measured is decided about."""
    records = operated(tmp_path, pause, go_on)
    (paused,) = (r.seq for r in records if isinstance(r.event, OperatorPaused))
    (gone_on,) = (r.seq for r in records if isinstance(r.event, OperatorContinued))
    between = [r.event for r in records[paused + 1 : gone_on]]

    assert any(isinstance(event, PairsMeasured) for event in between)
    assert not any(isinstance(event, Request) for event in between)
    assert not replay(records[:gone_on]).pending
    assert replay(records).finished


def test_lost_work_is_issued_again_in_a_paused_run() -> None:
    """It was under way; a run that is killed while paused must come to the same end."""
    state = apply(until(MeasurementRequested, is_test), OperatorPaused(order=name(2)))
    job = state.ledger.running
    seq = state.ledger.running_seq
    lost = RequestLost(by="resume", reason="killed")
    state.apply(Record(state.seq + 1, 0, "director", lost, (seq,)))
    assert followed(state) == job


def test_time_in_which_a_paused_run_does_nothing_is_not_the_runs() -> None:
    """A budget of wall time is for work, and so is the device's utilisation."""
    state = apply(State(), OperatorPaused(order=name(1)))
    state.apply(Record(1, 500 * 10**9, "operator", OperatorContinued(order=name(2))))
    state.apply(Record(2, 503 * 10**9, "operator", OperatorPaused(order=name(3))))
    assert state.spending.wall_s == 3


def test_a_stop_is_an_order_too(tmp_path: Path) -> None:
    """It is the last that the process hears; what comes later waits for the next one."""

    def stop(state: State) -> RunInterrupted | None:
        running = state.ledger.running
        return RunInterrupted(reason="enough", order=name(7)) if running else None

    (*_, last) = operated(tmp_path, stop, hint)
    assert (last.actor, last.event) == ("operator", RunInterrupted(reason="enough", order=name(7)))


# ---- hint ----------------------------------------------------------------------------------


def test_a_hint_reaches_the_next_prompts_of_its_kernel_alone(tmp_path: Path) -> None:
    """With a number to cite."""
    records = operated(tmp_path, hint)
    hinted = next(r.seq for r in records if isinstance(r.event, OperatorHinted))
    blobs, shown = Blobs(tmp_path), set()
    for record in records:
        if isinstance(record.event, RoleReplied):
            asked = records[record.because[0]]
            assert asked.event.kind == "turn_assigned"
            has = "- h1: turn the knob to 3\n" in blobs.text(record.event.prompt)
            assert not has or asked.seq > hinted
            shown.add((asked.event.kernel, asked.seq > hinted, has))
    assert {("alpha", True, True), ("beta", True, False)} <= shown
    assert ("alpha", True, False) not in shown
    assert ("beta", True, True) not in shown


def test_only_the_latest_hints_are_kept() -> None:
    """A prompt has room for a few."""
    state = until(CandidateAccepted)
    for n in range(1, 6):
        apply(state, OperatorHinted(order=name(n), kernel="beta", text=f"say {n}"))
    assert state.desk.of("beta").hints == {3: "say 3", 4: "say 4", 5: "say 5"}


# ---- veto ----------------------------------------------------------------------------------


def test_a_candidate_that_waits_is_out_at_once() -> None:
    """Neither screening nor the device sees it."""
    state = until(CandidateProposed, lambda event: event.form == "design")
    candidate = len(state.tree.nodes)
    assert state.tree.nodes[candidate].status is Status.PROPOSED
    apply(state, told(candidate))
    withdrawn = followed(state)
    assert isinstance(withdrawn, CandidateWithdrawn)
    assert (withdrawn.candidate, withdrawn.incumbent) == (candidate, None)
    apply(state, withdrawn)
    assert candidate not in state.tree.proposed
    assert candidate not in state.tree.branches["alpha"].open
    again = told(candidate).model_copy(update={"order": name(5)})
    assert refusal(state, again) == f"c{candidate} is vetoed already"


@pytest.mark.parametrize(
    ("kind", "where"), [(ScreeningRequested, of_search), (MeasurementRequested, is_test)]
)
def test_work_under_way_is_finished_before_its_candidate_is_out(
    kind: type[AnyEvent], where: Callable[[Any], bool]
) -> None:
    """Its reply must find what it is about."""
    state = until(kind, where)
    (seq, request), *_ = reversed(state.pending.items())
    assert isinstance(request, ScreeningRequested | MeasurementRequested)
    apply(state, told(request.candidate))
    while (due := decide(state)) is not None:
        assert not isinstance(due.event, CandidateWithdrawn)
        state.apply(Record(state.seq + 1, 0, "director", due.event, due.because))
    reply = next(r for r in calm() if isinstance(r.event, Reply) and r.because == (seq,))
    state.apply(reply._replace(seq=state.seq + 1))
    withdrawn = followed(state)
    assert isinstance(withdrawn, CandidateWithdrawn)
    assert withdrawn.candidate == request.candidate


def test_lost_work_on_a_vetoed_candidate_is_given_up() -> None:
    """It is not issued again, however often it was lost."""
    state = until(MeasurementRequested, is_test)
    job, seq = state.ledger.running, state.ledger.running_seq
    assert job is not None
    apply(state, told(job.candidate))
    lost = RequestLost(by="resume", reason="killed")
    state.apply(Record(state.seq + 1, 0, "director", lost, (seq,)))
    due = decide(state)
    assert due is not None
    assert (due.event.kind, getattr(due.event, "reason", "")) == (
        "work_abandoned", f"c{job.candidate} is vetoed",
    )  # fmt: skip
    state.apply(Record(state.seq + 1, 0, "director", due.event, due.because))
    assert isinstance(followed(state), CandidateWithdrawn)


def test_the_version_before_a_vetoed_best_one_is_the_best_again(tmp_path: Path) -> None:
    """What was measured against the vetoed one is void, and the run goes on from there."""
    records = operated(tmp_path, veto(2))
    withdrawn = next(r for r in records if isinstance(r.event, CandidateWithdrawn))
    assert isinstance(withdrawn.event, CandidateWithdrawn)
    before, after = replay(records[: withdrawn.seq]), replay(records[: withdrawn.seq + 1])
    accepts, end = before.tree.branches["alpha"].accepts, replay(records)

    assert withdrawn.event.incumbent == accepts[0]
    assert after.tree.incumbent("alpha").candidate == accepts[0]
    assert after.tree.nodes[accepts[1]].status is Status.WITHDRAWN
    assert accepts[1] not in end.tree.branches["alpha"].accepts
    later = [r.event for r in records[withdrawn.seq :] if isinstance(r.event, MeasurementRequested)]
    assert all(accepts[1] not in (job.candidate, job.incumbent) for job in later)
    assert end.finished is not None
    assert list(audit(records, Blobs(tmp_path).get, LogError)) == []


def test_a_veto_after_the_final_pairs_began_takes_them_again(tmp_path: Path) -> None:
    """They are of the version that is out."""

    def late(state: State) -> Order | None:
        if not state.ledger.kernels.get("alpha") or not state.ledger.of("alpha").final:
            return None
        return told(state.tree.incumbent("alpha").candidate)

    records = operated(tmp_path, late)
    state = replay(records)
    vetoed = next(r.event.candidate for r in records if isinstance(r.event, CandidateVetoed))
    finished = state.tree.branches["alpha"].finished
    assert finished is not None
    assert finished.best != vetoed
    if finished.best != state.tree.branches["alpha"].baseline:
        assert len(state.ledger.of("alpha").final) == CALM.acceptance.final_pairs
    assert list(audit(records, Blobs(tmp_path).get, LogError)) == []


def test_a_design_rejected_against_a_vetoed_version_meets_the_next_one() -> None:
    """It lost to something that does not count."""
    state = until(RunFinished)
    best = state.tree.incumbent("alpha")
    beaten = next(
        n for n in state.tree.nodes.values()
        if n.form == "design" and n.failures == 0 and n.status in (Status.REJECTED, Status.SHELVED)
    )  # fmt: skip
    beaten.opponent, state.finished, state.closed = best.candidate, None, None
    beaten.kernel = "alpha"
    state.tree.branches["alpha"].nodes.append(beaten.candidate)
    state.tree.branches["alpha"].finished = None
    apply(state, told(best.candidate))
    withdrawn = followed(state)
    assert isinstance(withdrawn, CandidateWithdrawn)
    apply(state, withdrawn)
    assert beaten.candidate in state.tree.branches["alpha"].expired


# ---- audit ---------------------------------------------------------------------------------


def test_the_consequence_of_a_forged_order_is_found(tmp_path: Path) -> None:
    """Who changes whom the operator vetoed would have to change all that followed."""
    records = operated(tmp_path, *EVERYTHING)
    blobs = Blobs(tmp_path).get
    assert list(audit(records, blobs, LogError)) == []
    for record in records:
        match record.event:
            case CandidateVetoed() as event:
                other = event.model_copy(update={"candidate": event.candidate - 1})
            case OperatorContinued():
                other = OperatorPaused(order=record.event.order)  # type: ignore[assignment]
            case _:
                continue
        changed = [r._replace(event=other) if r.seq == record.seq else r for r in records]
        assert [f for f in audit(changed, blobs, LogError) if f.sort == "unsupported"]
        removed = [r for r in records if r.seq != record.seq]
        assert list(audit(removed, blobs, LogError))
        by_other = [r._replace(actor="director") if r.seq == record.seq else r for r in records]
        assert any("not for director" in f.problem for f in audit(by_other, blobs, LogError))
