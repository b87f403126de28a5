"""Each budget closes the search cleanly, and is not overspent."""

from pathlib import Path

import pytest

from actors.providers.prices import prices
from decisions import models, turns
from decisions.closing import close, final_device_s, final_wall_s
from decisions.plan import decide
from events.campaign import Acceptance, Budget, Campaign, Model, Search
from events.log import read
from events.projections.ledger import KernelLedger
from events.projections.state import State, replay
from events.vocabulary import (
    AnyEvent,
    LogRepaired,
    PairsMeasured,
    Record,
    RunInterrupted,
    RunResumed,
    RunStarted,
    SearchClosed,
    TurnAssigned,
)
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign

SECONDS_PER_JOB = 1.0


class SlowClock:
    """A monotonic clock on which every reading is `SECONDS_PER_JOB` after the last one."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Read it."""
        self.now_s += SECONDS_PER_JOB
        return self.now_s


def limited(budget: Budget) -> Campaign:
    return campaign(max_candidates=200).model_copy(update={"budget": budget})


def test_device_seconds_are_reserved_before_a_job(tmp_path: Path) -> None:
    """The search closes while enough is left for the final pairs, which are taken."""
    state = begin(tmp_path, limited(Budget(device_s=60)), clock=SlowClock())

    assert state.closed is not None
    assert state.closed.reason == "budget: device_s"
    assert state.finished is not None
    assert state.spending.settled.device_s <= 60
    assert all(len(ledger.final) == 6 for ledger in state.ledger.kernels.values())


@pytest.mark.parametrize("device_s", [33, 39, 45])
def test_a_first_accept_at_the_last_moment_is_paid_for(tmp_path: Path, device_s: int) -> None:
    """The final pairs of a kernel are kept in reserve before anything is accepted for it."""
    late = limited(Budget(device_s=device_s)).model_copy(
        update={"kernels": ("alpha",), "acceptance": Acceptance(noise_pairs=60)}
    )
    state = begin(tmp_path, late, clock=SlowClock())

    assert state.finished is not None
    assert state.spending.settled.device_s <= device_s


def test_a_kernel_that_was_never_measured_ends_with_its_baseline(tmp_path: Path) -> None:
    """The figures of a run that stopped at once name a candidate that exists."""
    state = begin(tmp_path, limited(Budget(wall_s=0.001)))

    assert state.finished is not None
    for branch in state.tree.branches.values():
        assert branch.finished is not None
        assert branch.incumbent is None
        assert branch.finished.best == branch.baseline
        assert branch.finished.reason == "no candidate was accepted"


def test_a_device_budget_below_one_job_claims_nothing(tmp_path: Path) -> None:
    """A run that cannot measure anything ends at once, with a speed-up of 1."""
    state = begin(tmp_path, limited(Budget(device_s=0.5)), clock=SlowClock())

    assert state.finished is not None
    assert (state.finished.geomean, state.spending.settled.device_s) == (1.0, 0.0)


def test_wall_time_closes_the_search(tmp_path: Path) -> None:
    """Time is that of the records, so audit sees the same clock."""
    state = begin(tmp_path, limited(Budget(wall_s=0.3)))

    assert state.closed is not None
    assert state.closed.reason == "budget: wall_s"
    assert state.finished is not None


def test_one_long_job_does_not_close_the_search_long_before_its_time(tmp_path: Path) -> None:
    """The first job of a program may check for a minute what it computes; the final ones do not."""
    ledger = KernelLedger()
    for device_s in (60.0, 0.0, 0.0):
        ledger.add_job(device_s)
    state = begin(tmp_path, limited(Budget(wall_s=0.001)))
    state.ledger.kernels = {"alpha": ledger, "beta": KernelLedger()}

    assert final_device_s(state) == 3 * 60
    assert final_wall_s(state) == 3 * 20

    state.closed = None
    reasons = []
    for left_s in (61.0, 59.0):
        state.spending.limits = Budget(wall_s=state.spending.wall_s + left_s)
        due = close(state)
        reasons.append(due and due.event)
    assert reasons == [None, SearchClosed(reason="budget: wall_s")]


def test_the_time_between_a_crash_and_the_next_start_is_not_the_runs() -> None:
    """A start that finds a torn record says so first, hours after the record before."""
    state = State()
    marks: tuple[AnyEvent, ...] = (
        RunInterrupted(reason="any event"),
        RunInterrupted(reason="another"),
        LogRepaired(offset=1, n_bytes=1, sha="0" * 64),
        RunResumed(versions={}, toolchain={}),
        RunInterrupted(reason="a third"),
    )
    for seq, (at_s, mark) in enumerate(zip((0, 2, 9000, 9001, 9004), marks, strict=True)):
        state.apply(Record(seq=seq, time_ns=at_s * 10**9, actor="director", event=mark))

    assert state.spending.wall_s == 5


@pytest.mark.parametrize(
    ("budget", "affordable"),
    [
        (Budget(model_calls=3), 3),
        (Budget(tokens=80_000), 2),
        (Budget(cost_usd=0.1), 2),
        (Budget(model_calls=0), 0),
    ],
)
def test_a_model_call_is_reserved_before_it_is_made(budget: Budget, affordable: int) -> None:
    """What a call may cost counts until its reply says what it did cost."""
    model = Model(provider="litellm", model="m", usd_per_million_in=1, usd_per_million_out=2)
    settings = Campaign(
        name="m",
        target="fake",
        kernels=("alpha",),
        search=Search(in_flight=8),
        acceptance=Acceptance(),
        budget=budget,
        models={"default": model},
    )
    state = State()
    reserved = models.reserve(_started(state, settings), "default")

    n_calls = 0
    while turns.cannot_ask(state, "design") is None:
        state.spending.reserved[n_calls] = reserved
        n_calls += 1

    assert n_calls == affordable
    for name in ("model_calls", "tokens", "cost_usd"):
        limit = getattr(budget, name)
        assert limit is None or getattr(state.spending.committed, name) <= limit


def _started(state: State, settings: Campaign) -> State:
    start = RunStarted(
        campaign=settings, secret_seed="0", versions={}, toolchain={}, sources={}, cards={},
        prices=prices(settings, lambda model: None),
    )  # fmt: skip
    state.apply(Record(seq=0, time_ns=0, actor="director", event=start))
    return state


def test_the_catalogue_costs_nothing(tmp_path: Path) -> None:
    """Budgets of models do not touch a search that asks none."""
    state = begin(tmp_path, limited(Budget(model_calls=0, tokens=0, cost_usd=0)).model_copy(
        update={"search": Search(max_candidates=6)}
    ))  # fmt: skip

    assert state.closed is not None
    assert state.closed.reason == "max_candidates reached"
    assert state.spending.settled.model_calls == 0


def test_what_is_reserved_is_settled(tmp_path: Path) -> None:
    """At the end nothing is reserved, and what was spent is the sum of the replies."""
    begin(tmp_path, campaign(max_candidates=6), clock=SlowClock())
    records = list(read(tmp_path))
    state = replay(records)

    assert [s for s in state.spending.reserved if s not in state.pending] == []
    assert sum(isinstance(r.event, TurnAssigned) for r in records) > 6
    measured = [r.event.device_s for r in records if isinstance(r.event, PairsMeasured)]
    assert state.spending.settled.device_s >= sum(measured)
    assert decide(state) is None


def test_a_fake_run_needs_no_device(tmp_path: Path) -> None:
    """The fake target's truth is known: the best design is four times faster."""
    state = begin(tmp_path, campaign(max_designs=7, max_candidates=60), FakeTarget(noise=0.002))

    assert state.finished is not None
    assert state.finished.geomean == pytest.approx(4 / 0.8, rel=0.02)
