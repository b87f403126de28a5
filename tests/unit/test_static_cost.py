"""Static costs as hints: the order of the queue, the reserved share, the rare refusal."""

import math
from pathlib import Path

import pytest

from decisions import static_cost
from decisions.audit import audit
from decisions.examination import profile_head
from events.blobs import Blobs
from events.errors import LogError
from events.log import read
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    CandidateAccepted,
    CandidateExamined,
    CandidateProposed,
    CandidateScreened,
    MeasurementRequested,
    StaticCost,
)
from tests.support.fake_target import CostedTarget, FakeTarget
from tests.support.runs import begin, campaign

SHA = "0" * 64


def add(state: State, cycles: int | None, *, form: str = "design", toolchain: str = "t") -> Node:
    """Put an examined candidate into the tree; the first is the baseline and best version."""
    tree = state.tree
    number = tree.next_id
    tree.propose(
        CandidateProposed(
            candidate=number, kernel="k", form=form, parent=None, hypothesis="", source=SHA,
            normalized=SHA, author="target",
        ),
        number,
    )  # fmt: skip
    cost = None if cycles is None else StaticCost(cycles=cycles, profile=SHA)
    examined = CandidateExamined(
        candidate=number, stages=(), fixtures=(), artifact=SHA, diagnostics=None, signature=None,
        cost=cost, toolchain=toolchain,
    )  # fmt: skip
    node = tree.examine(examined, number)
    if form == "baseline":
        tree.branches["k"].incumbent = number
    return node


def queue(*cycles: int | None, best: int = 100_000) -> tuple[State, list[Node]]:
    """A best version and candidates that wait, the oldest first."""
    state = State()
    add(state, best, form="baseline")
    return state, [add(state, c) for c in cycles]


def chosen(state: State, queued: list[Node]) -> int:
    return static_cost.first(state, "k", queued)[0].candidate


def test_the_best_static_cost_goes_first_and_neutral_before_worse() -> None:
    state, queued = queue(140_000, 100_100, 95_000, 90_000)
    order = []
    while queued:
        order.append(chosen(state, queued))
        queued = [n for n in queued if n.candidate != order[-1]]

    assert order == [5, 4, 3, 2]


def test_without_static_costs_the_oldest_goes_first() -> None:
    state, queued = queue(None, None, None)

    assert static_cost.first(state, "k", queued) == (queued[0], "next in the queue")


def test_a_cost_of_another_toolchain_is_no_hint() -> None:
    """Two compilers' cycles do not compare."""
    state, queued = queue(100_100)
    other = add(state, 50_000, toolchain="other")

    assert static_cost.change(state, other) is None
    assert chosen(state, [*queued, other]) == 2


def test_a_hint_that_is_mostly_wrong_turns_around() -> None:
    """Below a half the reliability says that what looks worse is the better bet."""
    state, queued = queue(90_000, 110_000)
    seen = state.tree.branches["k"].agreement
    assert chosen(state, queued) == 2
    seen.n_compared, seen.n_agreed = 40, 4

    assert static_cost.reliability(state.tree.branches["k"]) == pytest.approx(11.1 / 50)
    assert chosen(state, queued) == 3


def test_each_fifth_start_goes_to_a_neutral_candidate() -> None:
    state, queued = queue(90_000, 100_400, 99_600)
    branch = state.tree.branches["k"]
    taken = []
    for branch.n_started in range(10):
        taken.append(chosen(state, queued))

    assert taken == [2, 2, 2, 2, 3, 2, 2, 2, 2, 3]


def test_the_reserved_start_is_not_wasted_where_nothing_is_neutral() -> None:
    state, queued = queue(110_000, 90_000)
    state.tree.branches["k"].n_started = 4

    assert chosen(state, queued) == 3


def test_only_what_is_far_beyond_every_error_so_far_is_refused() -> None:
    """The limit is twice the worst error, and an error of 20 log-percent is always granted."""
    state, (far, near) = queue(round(100_000 * math.exp(0.41)), round(100_000 * math.exp(0.39)))
    seen = state.tree.branches["k"].agreement

    assert static_cost.hopeless(state, far) == ""
    seen.n_compared = static_cost.FEWEST
    assert "41 log-percent above" in static_cost.hopeless(state, far)
    assert static_cost.hopeless(state, near) == ""
    seen.worst = 21.0
    assert static_cost.hopeless(state, far) == ""


def test_the_targets_own_versions_are_never_refused_for_their_cost() -> None:
    """A canary is slow on purpose."""
    state, _ = queue()
    state.tree.branches["k"].agreement.n_compared = 50
    slow = add(state, 1_000_000, form="canary_slow")

    assert static_cost.hopeless(state, slow) == ""


def test_agreement_counts_signs_and_the_worst_pessimism() -> None:
    state, _ = queue()
    seen = state.tree.branches["k"].agreement
    for change, effect in ((-3.0, -1.0), (4.0, 2.0), (5.0, -2.5), (-2.0, 9.0), (0.1, -5.0)):
        seen.compare(change, effect)

    assert (seen.n_compared, seen.n_agreed, seen.worst) == (4, 2, 7.5)


def test_a_run_records_costs_and_learns_from_its_verdicts(tmp_path: Path) -> None:
    """Fold and decisions as they play together: what was decided counts, what is open does not."""
    state = begin(tmp_path, campaign(max_candidates=16), CostedTarget())
    events = [record.event for record in read(tmp_path)]
    screened = {e.candidate: e.passed for e in events if isinstance(e, CandidateScreened)}
    examined = [e for e in events if isinstance(e, CandidateExamined)]
    accepted = [e for e in events if isinstance(e, CandidateAccepted)]

    assert all((e.cost is not None) == screened[e.candidate] for e in examined)
    assert sum(b.agreement.n_compared for b in state.tree.branches.values()) > 0
    assert accepted
    starts = {
        (e.candidate, e.incumbent)
        for e in events
        if isinstance(e, MeasurementRequested)
        and e.purpose == "test"
        and state.tree.nodes[e.candidate].is_search
    }
    assert sum(b.n_started for b in state.tree.branches.values()) == len(starts)
    assert profile_head(1500) == "makespan 1,500 cycles, "


def test_what_is_hopeless_never_meets_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Screening refuses it and says why; without a cost model nothing is refused like that."""
    monkeypatch.setattr(static_cost, "FEWEST", 0)
    monkeypatch.setattr(static_cost, "LEAST_ERROR", 10.0)
    for name, target in (("costed", CostedTarget()), ("plain", FakeTarget())):
        state = begin(tmp_path / name, campaign(max_candidates=12), target)
        events = [record.event for record in read(tmp_path / name)]
        screened = [e for e in events if isinstance(e, CandidateScreened)]
        refused = {e.candidate for e in screened if e.stage == "cost"}
        measured = {e.candidate for e in events if isinstance(e, MeasurementRequested)}

        assert bool(refused) == (name == "costed")
        assert not refused & measured
        assert all(state.tree.nodes[c].reason.startswith("refused at cost: ") for c in refused)
        assert list(audit(list(read(tmp_path / name)), Blobs(tmp_path / name).get, LogError)) == []
