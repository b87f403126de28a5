"""What a report says of a toolchain that was replaced under the run."""

from pathlib import Path

import pytest

from events.blobs import Blobs
from events.projections.state import replay
from scripts.reporting.history import Run, load
from scripts.reporting.page import render
from scripts.reporting.renewal import changes
from tests.support.runs import begin, campaign
from tests.unit.test_toolchain_change import upgraded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose versions survive the new toolchain."""
    path = tmp_path_factory.mktemp("renewal") / "run"
    upgraded(path)
    return path


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """The same, read back."""
    return load(folder)


def test_a_run_under_one_toolchain_has_nothing_to_tell(tmp_path: Path) -> None:
    """Nor has its page."""
    begin(tmp_path, campaign(max_candidates=2))
    run = load(tmp_path)

    assert changes(run) == ()
    assert "What held, what changed" not in render(run, Blobs(tmp_path))


def test_every_fact_of_before_is_told_of_once(run: Run) -> None:
    """With its state on both sides."""
    (change,) = changes(run)
    before = replay(run.records[: change.record.seq]).knowledge

    assert [fact.number for fact in change.facts] == list(before.facts)
    for fact in change.facts:
        assert fact.before == before.states[fact.number]
        assert fact.after == run.state.knowledge.states[fact.number]
        assert fact.reason


def test_what_was_checked_again_held_and_what_cannot_be_is_unknown(run: Run) -> None:
    """A rule has its reproducer; a figure is measured anew, as another fact."""
    (change,) = changes(run)

    assert {fact.fact.topic for fact in change.that("held")} == {"rule"}
    assert all("its probe is refused" in fact.reason for fact in change.that("held"))
    assert not change.that("changed")
    assert {fact.fact.topic for fact in change.that("unknown")} == {"noise", "bound"}
    assert all("measured anew: f" in fact.reason for fact in change.that("unknown"))


def test_best_versions_are_kept_when_they_build_and_are_correct(run: Run) -> None:
    """Those of the moment of the change."""
    (change,) = changes(run)
    branches = replay(run.records[: change.record.seq]).tree.branches

    assert [(v.kernel, v.candidate) for v in change.versions] == [
        (kernel, branch.incumbent) for kernel, branch in branches.items()
    ]
    assert {version.fate for version in change.versions} == {"kept"}
    assert change.fingerprints == (("compiler", "fake 1.0", "fake 2.0"),)


def test_before_anything_was_checked_nothing_is_known(run: Run) -> None:
    """The page of a run that has only just noticed."""
    (change,) = changes(run)
    cut = run.records[: change.record.seq + 1]
    (early,) = changes(Run(cut, replay(cut), run.head))

    assert early.facts == early.that("unknown")
    assert {fact.after for fact in early.facts} == {"stale"}
    assert {version.fate for version in early.versions} == {"unknown"}


def test_a_version_that_the_new_toolchain_refuses_is_withdrawn(tmp_path: Path) -> None:
    """And the page says why."""
    upgraded(tmp_path, "knob")
    run = load(tmp_path)
    (change,) = changes(run)

    withdrawn = [version for version in change.versions if version.fate == "withdrawn"]
    assert withdrawn
    assert all("by the toolchain of now" in version.reason for version in withdrawn)
    assert withdrawn[0].reason in render(run, Blobs(tmp_path))


def test_the_page_shows_facts_by_topic_with_their_states(run: Run, folder: Path) -> None:
    """And both fingerprints."""
    page = render(run, Blobs(folder))

    assert page.count('<li id="fact-') == len(run.state.knowledge.facts)
    assert "<td>fake 1.0</td><td><strong>fake 2.0</strong></td>" in page
    for state in set(run.state.knowledge.states.values()):
        assert f'<span class="badge {state}">{state}</span>' in page
