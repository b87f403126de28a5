"""Audit builds what was accepted again, and says what is another than it was."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from events.log import read
from events.projections.state import State, replay
from events.pruned import KnownBlobs
from scripts import audit, log, run
from scripts.rebuild import Bench, Rebuilt
from targets.protocol import BuildFailed, Built, Cost, FixtureResult
from tests.support.cli import campaign_file
from tests.support.fake_target import CostedTarget, FakeTarget
from tests.support.runs import begin, campaign


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of the fake target."""
    begin(tmp_path / "run", campaign(max_candidates=12))
    return tmp_path / "run"


def rebuilt(folder: Path, target: FakeTarget) -> tuple[State, list[Rebuilt]]:
    records = list(read(folder))
    state = replay(records)
    return state, list(Bench.of(records, state, KnownBlobs.of(folder, records), target).rebuild())


class NewCompiler(FakeTarget):
    """The same machine with another compiler, whose artifacts differ."""

    def fingerprint(self) -> dict[str, str]:
        """Another one."""
        return {"compiler": "fake 2.0"}

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Another artifact."""
        built = super().build(kernel, source)
        return Built(built.artifact + b"\n", "") if isinstance(built, Built) else built


class OtherArtifacts(NewCompiler):
    """A compiler that builds something else without saying that it is another one."""

    fingerprint = FakeTarget.fingerprint


class OtherErrors(FakeTarget):
    """Outputs that are not those of then."""

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Within the tolerance all the same."""
        return tuple(FixtureResult(f"fixture {i}", 0.5, "") for i, _ in enumerate(seeds))


class Wrong(FakeTarget):
    """Outputs that are wrong on some inputs that screening did not draw."""

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Wrong on fresh fixtures only."""
        results = super().check(kernel, artifact, seeds)
        is_fresh = seeds[0] != 1
        return (FixtureResult("fixture 0", 2.5, ""),) if is_fresh else results


def test_baselines_and_accepted_versions_are_built_again(folder: Path) -> None:
    """Those, in the order of each kernel's accepts, and no other."""
    state, found = rebuilt(folder, FakeTarget())
    expected = [
        candidate
        for branch in state.tree.branches.values()
        for candidate in (branch.baseline, *branch.accepts)
    ]

    assert [one.candidate for one in found] == expected
    assert len(expected) > 2
    assert all(one.is_same_toolchain and one.is_same_artifact for one in found)
    assert all(len(one.recorded_fixtures) == len(one.fresh_fixtures) == 4 for one in found)
    assert not any(list(one.findings()) for one in found)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (OtherArtifacts(), "its artifact is not the recorded one"),
        (OtherErrors(), "its errors on the recorded fixtures are not the recorded ones"),
        (Wrong(), "error 2.5 of the tolerance"),
    ],
)
def test_what_the_recorded_toolchain_does_not_repeat_is_unsupported(
    folder: Path, target: FakeTarget, problem: str
) -> None:
    """The same toolchain must give the same bytes, and these the same outputs."""
    _, found = rebuilt(folder, target)
    (finding,) = found[0].findings()

    assert (finding.problem, finding.sort) == (f"built again: {problem}", "unsupported")


class OtherCosts(CostedTarget):
    """A cost model that says something else than it said then."""

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """One cycle more."""
        cost = super().cost(kernel, artifact)
        return Cost(cost.cycles + 1, cost.schedule)


def test_a_static_cost_that_is_not_repeated_is_unsupported(tmp_path: Path) -> None:
    """It is deterministic, given the artifact and the toolchain."""
    begin(tmp_path, campaign(max_candidates=4), CostedTarget())
    _, same = rebuilt(tmp_path, CostedTarget())
    _, other = rebuilt(tmp_path, OtherCosts())

    assert not any(one.problem for one in same)
    assert other[0].problem == "its static cost is 30001, not the recorded 30000"
    assert other[0].sort == "unsupported"


def test_another_toolchain_is_said_and_contradicts_nothing(folder: Path) -> None:
    """What it builds is checked; that its bytes differ is no news."""
    _, found = rebuilt(folder, NewCompiler())

    assert not any(list(one.findings()) for one in found)
    assert "ANOTHER TOOLCHAIN: another artifact, correct on 8 fixtures" in str(found[0])


def test_a_source_that_was_pruned_cannot_be_built(folder: Path) -> None:
    """Nobody can tell, so nobody is accused."""
    assert log.main(["prune", str(folder), "--blobs", "source", "artifact"]) == 0
    _, found = rebuilt(folder, FakeTarget())

    assert {finding.sort for one in found for finding in one.findings()} == {"not_derivable"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of the cpu target."""
    tmp = tmp_path_factory.mktemp("cpu")
    file = campaign_file(tmp, "sliding_project_qkv", max_candidates=2)
    assert run.main([str(file), "--local", "--quiet", "--out", str(tmp / "run")]) == 0
    return tmp / "run"


@pytest.mark.device
def test_real_kernels_are_built_and_checked_again(
    real: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compiler of this machine gives the very artifacts and errors that are recorded."""
    assert audit.main([str(real), "--rebuild", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["supported"]
    assert len(said["rebuilt"]) > 1
    assert all(one["is_same_artifact"] and one["problem"] == "" for one in said["rebuilt"])

    assert audit.main([str(real), "--rebuild"]) == 0
    assert "c1 of sliding_project_qkv, built again by the recorded" in capsys.readouterr().out


WITHOUT_COMPILER = """
import sys
sys.modules["ziglang"] = None
from scripts.audit import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.device
def test_without_a_compiler_nothing_is_rebuilt_and_it_says_so(real: Path) -> None:
    """It cannot be done as asked; the audit alone needs no compiler."""
    for words, status, said in (
        (["--rebuild"], 2, "no C compiler found"),
        ([], 0, "every record is supported"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_COMPILER, str(real), *words],
            env={"PATH": "/nonexistent"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert said in done.stdout + done.stderr
