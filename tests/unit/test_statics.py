"""Static costs as people see them: beside the effect, and never without the word static."""

from pathlib import Path

import pytest

from events.blobs import Blobs
from events.log import read
from events.projections.state import State, replay
from scripts import audit, report, tree
from scripts.statics import agreement, static
from tests.support.fake_target import CostedTarget
from tests.support.runs import begin, campaign


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a target with a cost model."""
    folder = tmp_path_factory.mktemp("costed") / "run"
    begin(folder, campaign(max_candidates=16), CostedTarget())
    return folder


@pytest.fixture(scope="module")
def state(run: Path) -> State:
    return replay(read(run))


def best(state: State) -> int:
    return state.tree.branches["alpha"].accepts[0]


def test_the_change_is_against_the_parent(state: State) -> None:
    node = state.tree.nodes[best(state)]
    assert node.parent is not None
    told, base = static(state.tree, node), static(state.tree, state.tree.nodes[node.parent])

    assert base is not None
    assert str(base) == "30,000 static cycles"
    assert str(told) == "15,000 static cycles, -69.31 log-percent to its parent"


def test_the_tree_shows_the_static_speed_up_and_how_far_it_was_right(
    run: Path, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tree.main([str(run), "--kernel", "alpha"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert "static 2.000x" in next(line for line in lines if f"c{best(state)} on" in line)
    assert f"  {agreement(state.tree.branches['alpha'])}" in lines


def test_the_evidence_of_a_candidate_has_its_profile(
    run: Path, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main([str(run), f"c{best(state)}"]) == 0
    told = capsys.readouterr().out

    assert "static      15,000 static cycles, -69.31 log-percent to its parent\n" in told
    assert "    | makespan 15,000 cycles, 2 operations: hand\n" in told


def test_the_report_shows_both(run: Path, state: State, tmp_path: Path) -> None:
    assert report.main([str(run), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text("utf-8")

    assert "15,000 static cycles" in page
    assert f"alpha: {agreement(state.tree.branches['alpha'])}." in page
    node = state.tree.nodes[best(state)]
    assert node.cost is not None
    assert Blobs(run).text(node.cost.profile).splitlines()[0] in page
