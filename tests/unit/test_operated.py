"""What people read of the operator's orders, and of what followed."""

from pathlib import Path

import pytest

from decisions.replies import SourceText, parse
from events.blobs import Blobs
from scripts import audit, tree
from scripts.operated import ordered
from scripts.progress import news
from scripts.reporting import accounts, branches
from scripts.reporting.history import Run, load
from scripts.reporting.page import render
from targets.protocol import Ask
from tests.support.fake_target import FakeCatalogue, FakeTarget
from tests.support.operated import EVERYTHING, Operator
from tests.support.runs import begin, campaign


class Obedient(FakeCatalogue):
    """Cites the operator in every step, as it may do without having read the hint."""

    def reply(self, ask: Ask) -> str:
        """Answer, and cite."""
        said = super().reply(ask)
        return f"{said}<cites>h1</cites>" if ask.task == "step" and "<edit" in said else said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with every sort of order."""
    path, target = tmp_path_factory.mktemp("runs") / "operated", FakeTarget()
    target.catalogue = Obedient()
    begin(path, campaign(), target, orders=Operator(*EVERYTHING))
    return path


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """The same, read back."""
    return load(folder)


def test_every_order_is_told_with_what_followed(run: Run) -> None:
    """A hint with those that cite it, a veto with the version that is the best again."""
    hint, paused, gone_on, veto, budget = ordered(run.records)

    assert (hint.what, hint.detail) == ("h1: the operator on alpha:", "turn the knob to 3")
    assert hint.outcome.startswith("cited by c")
    assert (paused.what, gone_on.what) == ("paused by the operator", "goes on, says the operator")
    assert "is the best version again" in veto.outcome
    assert budget.detail == "wall_s 900, wall_s +100, tokens 500000"


def test_the_report_shows_orders_and_the_limits_of_today(run: Run, folder: Path) -> None:
    """A vetoed candidate has a fate of its own."""
    page = render(run, Blobs(folder))
    for order in ordered(run.records):
        assert order.what in page
    assert "it reads past its buffer" in page
    fates = accounts.fates(branches.rows(run))
    assert sum(counts["withdrawn"] for counts in fates.values()) == 1
    assert {line.name: line.limit for line in accounts.budgets(run)}["tokens"] == "500,000"


def test_the_tree_shows_the_orders_of_its_kernels(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hint belongs to one kernel, a pause to all of them."""
    assert tree.main([str(folder)]) == 0
    told = capsys.readouterr().out
    assert tree.main([str(folder), "--kernel", "beta"]) == 0
    of_beta = capsys.readouterr().out

    assert "turn the knob to 3 cited by c" in told
    assert "  withdrawn  " in told
    assert "paused by the operator" in of_beta
    assert "turn the knob" not in of_beta


def test_the_evidence_of_a_vetoed_candidate_names_the_veto(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for its verdict finds both: what was measured, and who said no."""
    vetoed = next(n for n in run.state.tree.nodes.values() if n.status == "withdrawn")
    assert audit.main([str(folder), f"c{vetoed.candidate}"]) == 0
    told = capsys.readouterr().out

    assert "accepted [" in told
    assert "withdrawn: vetoed by the operator: it reads past its buffer" in told


def test_orders_are_news(run: Run) -> None:
    """Who watches the run sees what somebody else has ordered."""
    told = [line for record in run.records if (line := news(record, run.state))]
    assert "the operator on alpha: turn the knob to 3" in told
    assert any(
        "is vetoed by the operator" in line and "best version again" in line for line in told
    )


def test_a_hint_is_cited_like_a_fact() -> None:
    """Both are numbered, by letters of their own."""
    reply = "<hypothesis>x</hypothesis><source>s</source><cites>f3, h1</cites>"
    parsed = parse("implement", reply, "")
    assert isinstance(parsed, SourceText)
    assert parsed.cites == ("f3", "h1")
