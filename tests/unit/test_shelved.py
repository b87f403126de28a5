"""What becomes of a candidate that was set aside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from decisions.acceptance import judge
from decisions.capital import Scale
from decisions.plan import decide
from events.campaign import Acceptance
from events.log import read
from events.projections.state import State
from events.vocabulary import CandidateShelved, PairsMeasured
from targets.protocol import MeasureFailed
from tests.support.fake_target import DESIGNS, FakeTarget, facts_of
from tests.support.runs import begin, campaign


class TiredDevice(FakeTarget):
    """A device that measures the design ``half``, known by its time, once and then no more."""

    def __init__(self, time: str) -> None:
        super().__init__()
        self._time_of_half, self.n_half = time, 0

    def measure(self, kernel: str, arms: Sequence[bytes], *args: Any, **kwargs: Any) -> Any:
        """Fail, through no fault of an arm."""
        if facts_of(arms[1].decode())["time"] == self._time_of_half:
            self.n_half += 1
            if self.n_half > 1:
                return MeasureFailed(None, "the machine is too busy")
        return super().measure(kernel, arms, *args, **kwargs)


@pytest.mark.parametrize(("time", "start_price"), [("0.5", 0.003), ("0.9975", 0.05)])
def test_a_candidate_that_cannot_be_measured_stays_shelved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: str, start_price: float
) -> None:
    """An empty queue must not send it to the device for ever, nor again after its price did."""
    monkeypatch.setitem(cast("dict[str, str]", DESIGNS), "half", f"time {time}\nknob 0\n")
    target = TiredDevice(time)
    settings = campaign(max_candidates=2, max_designs=2).model_copy(
        update={
            "kernels": ("alpha",),
            "acceptance": Acceptance(start_price=start_price, pairs_per_job=3),
        }
    )
    state = begin(tmp_path, settings, target)

    half = next(node for node in state.tree.nodes.values() if node.move == "design:half")
    assert state.finished is not None
    assert (half.status, half.index, half.n_pairs) == ("shelved", None, 3)
    assert target.n_half == 6


def _measured(run: Path, form: str) -> State:
    """The state of a run right after the first pairs of a candidate whose measuring goes on."""
    begin(run, campaign(), FakeTarget(noise=0.05))
    state = State()
    for record in read(run):
        job = state.ledger.running
        state.apply(record)
        if isinstance(record.event, PairsMeasured) and job is not None and job.purpose == "test":
            node = state.tree.nodes[job.candidate]
            due = decide(state)
            if node.form == form and due is not None and due.event.kind == "measurement_requested":
                return state
    raise AssertionError(f"no {form} was measured twice")


def test_a_step_that_lost_its_parent_keeps_its_figures(tmp_path: Path) -> None:
    """Its pairs were taken, so the record says what they were worth, and against whom."""
    state = _measured(tmp_path, "step")
    node = next(n for n in state.tree.nodes.values() if n.pairs and n.status == "queued"
                and n.form == "step")  # fmt: skip
    branch = state.tree.branches[node.kernel]
    before, branch.incumbent = branch.incumbent, branch.baseline
    due = decide(state)

    assert node.scale is not None
    assert due is not None
    assert isinstance(due.event, CandidateShelved)
    said = judge(node.pairs, Scale(*node.scale), campaign().acceptance, 0.003)
    assert (due.event.capital, due.event.effect) == (said.capital, said.effect)
    assert (due.event.premise_parent, due.event.index) == (before, None)


def test_pairs_are_paid_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on when the queue is empty must not raise the price for what comes after it."""
    monkeypatch.setattr("tests.support.fake_target.KNOB_GAINS", (1.0, 0.995, 0.99, 1.001, 0.998))
    dear = campaign().model_copy(
        update={"acceptance": Acceptance(start_price=0.05, pairs_per_job=3)}
    )
    begin(tmp_path, dear, FakeTarget(noise=0.02))
    n_known: dict[tuple[int, int], int] = {}
    n_again = 0
    for record in read(tmp_path):
        if isinstance(record.event, CandidateShelved) and record.event.index is not None:
            event = record.event
            key = (event.candidate, event.premise_parent)
            if event.n_pairs - n_known.get(key, event.n_pairs) == 3:
                n_again += 1
                assert event.next_price < event.price
            n_known[key] = event.n_pairs

    assert n_again > 10
