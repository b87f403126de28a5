"""Who is asked next, whatever was answered."""

from pathlib import Path

from events.log import read
from events.vocabulary import TurnAssigned
from targets.protocol import Ask
from tests.support.fake_target import FakeCatalogue, FakeTarget
from tests.support.runs import begin, campaign


class SilentAnalyst(FakeCatalogue):
    """A catalogue whose analyst never can tell."""

    def reply(self, ask: Ask) -> str:
        """Answer, or not."""
        return "<nothing>no idea</nothing>" if ask.task == "analyse" else super().reply(ask)


def test_an_analyst_who_cannot_tell_is_asked_once_and_steps_go_on(tmp_path: Path) -> None:
    """The prompt allows that answer, so it must not end the search."""
    target = FakeTarget()
    target.catalogue = SilentAnalyst()
    state = begin(tmp_path, campaign(max_candidates=40), target)
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]
    asked = [(t.kernel, t.parent) for t in turns if t.task == "analyse"]

    assert asked
    assert len(asked) == len(set(asked))
    assert state.finished is not None
    assert all(branch.n_steps > 0 for branch in state.tree.branches.values())
