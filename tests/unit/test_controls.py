"""Controls of the harness are not skipped, and their coins are never used twice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from decisions.plan import decide
from events.campaign import Acceptance
from events.log import read
from events.projections.state import State
from events.vocabulary import (
    AnyEvent,
    CandidateProposed,
    HarnessChecked,
    JobFailed,
    MeasurementRequested,
    Pair,
    PairsMeasured,
    Record,
    RunResumed,
    RunStarted,
    Spend,
)
from targets.protocol import Measured, MeasureFailed
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign

SHA = "0" * 64


class BiasedTarget(FakeTarget):
    """A harness that favours the candidate's arm, whatever is in it."""

    def measure(
        self, kernel: str, arms: Sequence[bytes], schedule: Sequence[int], **how: Any
    ) -> Measured | MeasureFailed:
        """Make every candidate's run a tenth shorter."""
        got = super().measure(kernel, arms, schedule, **how)
        if isinstance(got, MeasureFailed) or len(arms) > 2:
            return got
        runs = [
            type(r)(r.arm, tuple(s * (0.9 if r.arm else 1) for s in r.launches_s), r.probe_s)
            for r in got.runs
        ]
        return Measured(tuple(runs), got.margins)


def test_a_sentinel_that_sounds_is_heard_after_a_kill(tmp_path: Path) -> None:
    """The process may die between the A/A pairs and what follows from them."""
    patient = campaign().model_copy(update={"acceptance": Acceptance(noise_pairs=60)})
    begin(tmp_path, patient, BiasedTarget())
    state = State()
    for record in read(tmp_path):
        if isinstance(record.event, HarnessChecked) and record.event.control == "sentinel":
            break
        state.apply(record)
    mark = RunResumed(versions={}, toolchain={"compiler": "fake 1.0"})
    state.apply(Record(seq=state.seq + 1, time_ns=0, actor="director", event=mark))

    due = decide(state)

    assert due is not None
    assert due.event == record.event


class Rig:
    """A device ledger of one kernel, whose jobs are answered as a test says."""

    def __init__(self) -> None:
        self._state = State()
        self.take(RunStarted(
            campaign=campaign(), secret_seed="0", versions={}, toolchain={}, sources={}, cards={}
        ))  # fmt: skip
        self.take(CandidateProposed(
            candidate=1, kernel="alpha", form="baseline", parent=None, hypothesis="", source=SHA,
            normalized=SHA, author="target",
        ))  # fmt: skip
        self.kernel = self._state.ledger.of("alpha")

    def take(self, event: AnyEvent) -> None:
        """Take in one record, which follows from the one before."""
        seq = self._state.seq + 1
        because = (self._state.seq,)
        self._state.apply(Record(seq=seq, time_ns=0, actor="x", because=because, event=event))

    def job(self, *, works: bool, device_s: float = 1.0) -> None:
        """Answer one A/A job of three pairs."""
        self.take(MeasurementRequested(
            job=1, kernel="alpha", purpose="sentinel", incumbent=1, candidate=1,
            incumbent_artifact=SHA, candidate_artifact=SHA, coins=(True, False, True), launches=1,
            inputs_seed=1, reserved=Spend(), reasons="",
        ))  # fmt: skip
        pair = Pair(candidate_first=True, incumbent_s=1, candidate_s=1, probe_s=0)
        self.take(
            PairsMeasured(
                job=1, pairs=(pair,) * 3, samples=SHA, incumbent_margin=0, candidate_margin=0,
                device_s=device_s, token=1, toolchain=self._state.toolchain_digest,
            )
            if works
            else JobFailed(job=1, arm="device", reason="hung", device_s=device_s)
        )  # fmt: skip


@pytest.mark.parametrize("works", [True, False])
def test_no_coin_of_an_a_a_pair_is_used_twice(works: bool) -> None:
    """Not after the 200th pair, and not for a pair that was void."""
    rig = Rig()
    for _ in range(100):
        rig.job(works=works)

    assert rig.kernel.aa_coins == 300


def test_a_few_failures_over_many_days_do_not_end_a_run() -> None:
    """A harness is given up after failures in a row."""
    rig = Rig()
    for works in (False, False, True, False):
        rig.job(works=works)

    assert rig.kernel.noise_failures == 1


def test_a_hung_job_does_not_make_the_next_limit_longer() -> None:
    """Limit and reservation follow the jobs that gave readings."""
    rig = Rig()
    rig.job(works=True, device_s=2.0)
    rig.job(works=False, device_s=60.0)

    assert (rig.kernel.job_s, rig.kernel.device_s) == (2.0, 62.0)
