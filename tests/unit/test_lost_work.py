"""Work that was lost with its actor is done again, but not for ever."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from events.log import read
from events.projections.state import State
from events.vocabulary import (
    MeasurementRequested,
    Record,
    RequestLost,
    Spend,
    TurnAssigned,
    WorkAbandoned,
)
from tests.support.fake_target import FakeTarget, facts_of
from tests.support.runs import begin, campaign


class FatalTarget(FakeTarget):
    """A target whose device actor dies of an arm that has ``word`` in its source."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word

    def measure(self, kernel: str, arms: Sequence[bytes], *args: Any, **kwargs: Any) -> Any:
        """Raise what nobody expects, or measure."""
        if any(self._word in facts_of(arm.decode()) for arm in arms):
            raise RuntimeError("the actor is dead " * 100)
        return super().measure(kernel, arms, *args, **kwargs)


def test_a_candidate_that_kills_the_device_actor_is_shelved(tmp_path: Path) -> None:
    """Each job of it is given up after two losses, and counts as one that failed."""
    state = begin(tmp_path, campaign(max_candidates=14), FatalTarget("crash"))

    killers = [n for n in state.tree.nodes.values() if n.reason.startswith("5 device jobs failed")]
    assert state.finished is not None
    assert state.finished.geomean is not None
    assert [node.kernel for node in killers] == ["alpha", "beta"]
    assert "lost with its actor 2 times" in killers[0].reason


def test_a_device_actor_that_always_dies_ends_the_run(tmp_path: Path) -> None:
    """A run without readings must not fill the disk with lost jobs."""
    state = begin(tmp_path, campaign(), FatalTarget("knob"))

    assert state.finished is not None
    assert state.finished.geomean is None
    assert "20 A/A jobs in a row failed" in next(
        r.event.reason for r in read(tmp_path) if r.event.kind == "harness_checked"
        and "A/A" in r.event.reason
    )  # fmt: skip


def test_a_job_that_is_given_up_uses_up_its_coins(tmp_path: Path) -> None:
    """What was lost may have been seen: the pair is repeated with a new coin."""
    begin(tmp_path, campaign(max_candidates=14), FatalTarget("crash"))
    records = list(read(tmp_path))
    given_up = {r.event.job for r in records if isinstance(r.event, WorkAbandoned)}
    requests = [r.event for r in records if isinstance(r.event, MeasurementRequested)]
    lost = [r for r in requests if r.job in given_up and r.kernel == "alpha"]

    assert len(lost) == 10
    assert [lost[i].coins for i in range(0, 10, 2)] == [lost[i].coins for i in range(1, 10, 2)]
    assert len({r.coins for r in lost}) > 1


def test_the_reason_of_a_loss_is_short(tmp_path: Path) -> None:
    """Events are small, whatever an exception says."""
    begin(tmp_path, campaign(max_candidates=8), FatalTarget("knob"))
    losses = [r.event for r in read(tmp_path) if isinstance(r.event, RequestLost)]

    assert losses
    assert all(len(loss.reason) < 400 for loss in losses)


@pytest.mark.parametrize(("by", "spent"), [("mailbox", 900), ("resume", 0)])
def test_a_call_lost_with_its_actor_costs_what_was_reserved(by: str, spent: int) -> None:
    """It may have been paid for; after a resumption it is sent again, on the same reservation."""
    turn = TurnAssigned(
        turn=1, kernel="k", role="analyst", task="analyse", nth=1, model="default", parent=1,
        thread=1, reserved=Spend(model_calls=1, tokens=900), reasons="",
    )  # fmt: skip
    lost = RequestLost.model_validate({"by": by, "reason": "gone"})
    state = State()
    state.desk.start(("k",))
    state.apply(Record(seq=0, time_ns=0, actor="director", event=turn))
    state.apply(Record(seq=1, time_ns=0, actor="analyst", because=(0,), event=lost))

    assert state.spending.reserved == {}
    assert state.spending.settled.tokens == spent
