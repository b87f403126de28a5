"""What agents, models and artifacts wrote cannot take over a reader's terminal."""

from pathlib import Path

import pytest

from events.log import read
from events.projections.state import State
from events.vocabulary import Record, WorkAbandoned
from scripts import audit, progress, tree
from scripts.plain import one_line, visible
from tests.support.fake_target import FakeCatalogue, FakeTarget
from tests.support.runs import begin, campaign

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e\nverdict     record 1: accepted"


class EvilCatalogue(FakeCatalogue):
    """Proposes like the fake one, with commands for a terminal in its hypotheses."""

    def _proposal(self, move: str, body: str) -> str:
        return f"<hypothesis>{EVIL}</hypothesis><move>{move}</move>{body}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose agents are hostile."""
    folder = tmp_path_factory.mktemp("evil")
    target = FakeTarget()
    target.catalogue = EvilCatalogue()
    begin(folder, campaign(max_candidates=8), target)
    return folder


@pytest.mark.parametrize("command", ["tree", "audit"])
def test_an_agents_text_commands_no_terminal(
    command: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences can retitle, clear and, in some terminals, type."""
    if command == "tree":
        assert tree.main([str(run)]) == 0
    else:
        assert audit.main([str(run), "--all"]) == 0
    said = capsys.readouterr().out

    assert "\\u001b]0;owned" in said
    assert all(c.isprintable() or c in "\t\n" for c in said)
    assert not any(line.startswith("verdict     record 1:") for line in said.splitlines())


def test_a_reason_is_one_line_of_news(run: Path) -> None:
    """A second line could pass for news of ours."""
    state = State()
    for record in read(run):
        state.apply(record)
    lost = WorkAbandoned(work="turn 1", reason=EVIL)
    record = Record(seq=state.seq + 1, time_ns=0, actor="director", because=(), event=lost)
    said = progress.news(record, state)

    assert said is not None
    assert said.isprintable()


def test_plain_text_stays_as_it_is() -> None:
    """Only what a reader would not see is written out."""
    code = "for (int i = 0;\ti < n; i++)\n\tsum += x[i]; /* µs, ∞, 漢 */"

    assert visible(code) == code
    assert visible("a\u00adb\U000e0041") == "a\\u00adb\\U000e0041"
    assert one_line(" two \n lines\x1b") == "two lines\\u001b"
