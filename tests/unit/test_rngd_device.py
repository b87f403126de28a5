"""RNGD's simulated device and static cost, with the vendor's compiler played by a constant."""

import json
from collections.abc import Sequence

import pytest

from actors.screening import told
from decisions.examination import profile_head
from targets.protocol import FixtureResult, Measured, MeasureFailed
from targets.rngd import costing, target
from targets.rngd.device import Now
from targets.rngd.environment import Environment
from targets.rngd.evaluating import Evaluation
from targets.rngd.target import RngdTarget
from tests.support.rngd import TEXT

KERNEL = "sliding_attention_output"
PAIRS = (0, 1, 1, 0) * 3
LAUNCHES = 40


class _Stopped(Now):
    """Always at the same moment, so that a job has the same luck in every test run."""

    def __call__(self) -> float:
        return 0.0


@pytest.fixture(autouse=True)
def constant_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "evaluator", lambda: None)
    monkeypatch.setattr(target, "launch_s", lambda *_: 4e-5)
    monkeypatch.setattr(target, "Now", _Stopped)


def _job(rngd: RngdTarget, seed: int = 1, checked: bool = True) -> Measured | MeasureFailed:
    return rngd.measure(
        KERNEL,
        [b"old", b"new"],
        PAIRS,
        group=2,
        launches=LAUNCHES,
        checked=(checked, checked),
        seed=seed,
        limit_s=60.0,
    )


def test_a_job_of_many_launches_takes_none_of_its_time_limit() -> None:
    """On the chip 480 launches would be over the limit; here they take no time."""
    measured = _job(RngdTarget("full"), checked=False)

    assert isinstance(measured, Measured), measured
    assert [len(run.launches_s) for run in measured.runs] == [LAUNCHES] * len(PAIRS)


def _counting(margin: float) -> tuple[RngdTarget, list[tuple[bytes, tuple[int, ...]]]]:
    asked: list[tuple[bytes, tuple[int, ...]]] = []

    class Counting(RngdTarget):
        def check(
            self, kernel: str, artifact: bytes, seeds: Sequence[int]
        ) -> tuple[FixtureResult, ...]:
            asked.append((artifact, tuple(seeds)))
            return (FixtureResult("one", margin, ""),)

    return Counting("full"), asked


def test_an_arm_is_checked_once_for_the_same_inputs() -> None:
    """Every job of a run gives the same inputs; a check takes half a minute of a core."""
    rngd, asked = _counting(0.25)

    jobs = [_job(rngd), _job(rngd), _job(rngd, seed=2)]

    assert [job.margins for job in jobs if isinstance(job, Measured)] == [(0.25, 0.25)] * 3
    assert asked == [(b"old", (1,)), (b"new", (1,)), (b"old", (2,)), (b"new", (2,))]


def test_an_arm_that_failed_is_checked_again() -> None:
    """It may have failed for the time that others took from it."""
    rngd, asked = _counting(1.5)

    assert [_job(rngd), _job(rngd)] == [MeasureFailed(0, "")] * 2
    assert asked == [(b"old", (1,))] * 2


def test_a_static_cost_is_the_end_of_its_own_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the evaluator prints for loops is less, and an audit compares cost and profile."""
    spans = [{"index": "5[0].1", "lifetime": {"begin": 0, "end": end}} for end in (60, 1_004)]
    evaluation = Evaluation(1_000, json.dumps({"instructions": spans}).encode())
    monkeypatch.setattr(costing, "evaluate", lambda *_: evaluation)

    cost = costing.cost(Environment.__new__(Environment), TEXT)

    assert cost.cycles == 1_004
    assert told(cost).decode().startswith(profile_head(cost.cycles))
