"""A toolchain that is replaced under a run: nothing of the old one counts under the new one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from decisions.audit import audit
from events.blobs import Blobs
from events.errors import LogError
from events.log import read
from events.projections.state import State, replay
from events.projections.tree import Status
from events.vocabulary import (
    CandidateAccepted,
    CandidateExamined,
    CandidateWithdrawn,
    FactChecked,
    FactJudged,
    FactLearned,
    MeasurementRequested,
    PairsMeasured,
    Record,
    ToolchainChanged,
)
from targets.protocol import BuildFailed, Built
from tests.support.fake_target import FakeTarget, facts_of
from tests.support.runs import begin, campaign

AT_JOB = 55
"""The device job before which the toolchain is replaced: by then steps have been accepted."""


class UpgradedTarget(FakeTarget):
    """Version 1.0 until a device job, then 2.0, which does not know a word of 1.0 any more."""

    def __init__(self, gone: str, at_job: int = AT_JOB) -> None:
        super().__init__()
        self._gone, self._at_job, self._n_jobs = gone, at_job, 0

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """As ever, without a word in the new version."""
        about = facts_of(source)
        if self.version == "2.0" and f"{self._gone} {about.get(self._gone)}" in source:
            return BuildFailed(f"no {self._gone} here", "unknown word", "", certain=False)
        return super().build(kernel, source)

    def measure(self, kernel: str, arms: Sequence[bytes], *args: Any, **kwargs: Any) -> Any:
        """As ever; one job finds the toolchain replaced while it ran."""
        self._n_jobs += 1
        if self._n_jobs == self._at_job:
            self.version = "2.0"
        return super().measure(kernel, arms, *args, **kwargs)


def upgraded(run: Path, gone: str = "nothing", at_job: int = AT_JOB) -> tuple[State, list[Record]]:
    """A whole run under such a target."""
    state = begin(run, campaign(), UpgradedTarget(gone, at_job))
    return state, list(read(run))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose versions survive the new toolchain."""
    folder = tmp_path_factory.mktemp("upgraded") / "run"
    upgraded(folder)
    return folder


def place(records: list[Record]) -> int:
    """Where the change was noticed."""
    return next(r.seq for r in records if isinstance(r.event, ToolchainChanged))


def test_the_change_is_noticed_by_the_job_that_it_hit(run: Path) -> None:
    """The job's reading is of neither toolchain, so there is none."""
    records = list(read(run))
    seq = place(records)

    asked = records[records[seq].because[0]].event
    assert isinstance(asked, MeasurementRequested)
    assert sum(isinstance(r.event, ToolchainChanged) for r in records) == 1
    assert replay(records).toolchain == {"compiler": "fake 2.0"}


def test_best_versions_are_built_checked_and_measured_before_anything_meets_them(
    run: Path,
) -> None:
    """An accept of the old toolchain is a claim about the old toolchain."""
    records = list(read(run))
    seq = place(records)
    before = replay(records[: seq + 1])
    n_tests = 0
    for kernel, branch in before.tree.branches.items():
        best = branch.incumbent
        assert best != branch.baseline, "the change came too early to show anything"
        later = [r.event for r in records[seq:]]
        jobs = [e for e in later if isinstance(e, MeasurementRequested) and e.kernel == kernel]
        examined = next(
            i
            for i, e in enumerate(later)
            if isinstance(e, CandidateExamined) and e.candidate == best
        )
        assert examined < later.index(jobs[0])
        tests = [job for job in jobs if job.purpose == "test"]
        n_tests += len(tests)
        if tests:
            assert {"noise", "bound"} <= {job.purpose for job in jobs[: jobs.index(tests[0])]}
    assert n_tests


def test_pairs_of_two_toolchains_never_meet_in_one_verdict(run: Path) -> None:
    """Every pair behind an accept has the toolchain of its moment."""
    records = list(read(run))
    for record in records:
        if isinstance(record.event, CandidateAccepted):
            pairs = [records[seq].event for seq in record.because]
            found = {e.toolchain for e in pairs if isinstance(e, PairsMeasured)}
            assert found == {replay(records[: record.seq]).toolchain_digest}


def test_rules_are_asked_again_with_the_source_that_was_refused(run: Path) -> None:
    """This toolchain still refuses it."""
    records = list(read(run))
    seq = place(records)
    learned = [r for r in records[:seq] if isinstance(r.event, FactLearned)]
    rules = [i for i, r in enumerate(learned, 1) if r.event.topic == "rule"]  # type: ignore[union-attr]
    checked = [r.event.fact for r in records[seq:] if isinstance(r.event, FactChecked)]
    judged = {r.event.fact: r.event.state for r in records if isinstance(r.event, FactJudged)}

    assert rules
    assert checked == rules
    assert set(judged.values()) == {"confirmed"}
    end = replay(records)
    stale = [n for n, state in end.knowledge.states.items() if state == "stale"]
    assert {end.knowledge.facts[n].topic for n in stale} == {"noise", "bound"}
    assert all(end.knowledge.records[n] < seq for n in stale)


def test_the_run_goes_on_to_its_end_and_audit_derives_it(run: Path) -> None:
    """The figures are of the new toolchain alone."""
    records = list(read(run))
    end = replay(records)

    assert end.finished is not None
    assert end.finished.geomean is not None
    assert end.finished.geomean > 3
    assert not list(audit(records, Blobs(run).get, LogError))


@pytest.mark.parametrize("at_job", [1, 2, 9, 25, 62, 65])
def test_a_change_at_any_job_leaves_a_run_that_ends(tmp_path: Path, at_job: int) -> None:
    """Whether noise, a canary, a bound, a comparison or a final pair was running."""
    state, records = upgraded(tmp_path, at_job=at_job)

    assert any(isinstance(r.event, ToolchainChanged) for r in records)
    assert state.finished is not None
    assert state.finished.geomean is not None
    assert not list(audit(records, Blobs(tmp_path).get, LogError))


def test_a_best_version_that_the_new_toolchain_refuses_gives_way_to_the_one_before(
    tmp_path: Path,
) -> None:
    """Down to the baseline, if need be; and the search goes on from there."""
    first = replay(upgraded(tmp_path / "a")[1][: place(list(read(tmp_path / "a"))) + 1])
    best = first.tree.incumbent("alpha")
    source = Blobs(tmp_path / "a").get(best.source).decode()
    gone = "knob" if facts_of(source)["knob"] != "0" else "time"

    class Pickier(UpgradedTarget):
        def build(self, kernel: str, source: str) -> Built | BuildFailed:
            turned = facts_of(source).get(gone) != "0" and gone in facts_of(source)
            if self.version == "2.0" and kernel == "alpha" and turned and gone == "knob":
                return BuildFailed("no knob turns here", "knob", "", certain=False)
            return super().build(kernel, source)

    state = begin(tmp_path / "b", campaign(), Pickier("nothing"))
    records = list(read(tmp_path / "b"))
    withdrawn = [r.event for r in records if isinstance(r.event, CandidateWithdrawn)]

    assert gone == "knob"
    assert withdrawn
    assert "by the toolchain of now" in withdrawn[0].reason
    assert state.tree.nodes[withdrawn[0].candidate].status is Status.WITHDRAWN
    kept = Blobs(tmp_path / "b").get(state.tree.incumbent("alpha").source).decode()
    assert facts_of(kept)["knob"] == "0"
    assert state.finished is not None
    assert not list(audit(records, Blobs(tmp_path / "b").get, LogError))
