"""Deciding must not change what is decided about."""

from pathlib import Path

from decisions.plan import decide
from events.log import read
from events.projections.state import State
from tests.support.runs import begin, campaign


def test_deciding_leaves_the_state_as_it_is(tmp_path: Path) -> None:
    """The director decides many times per record, replay never: both must have one digest."""
    begin(tmp_path, campaign(max_candidates=8))
    asked, silent = State(), State()
    for record in read(tmp_path):
        asked.apply(record)
        silent.apply(record)
        decide(asked)
        assert asked.digest() == silent.digest(), record


def test_deciding_twice_gives_the_same(tmp_path: Path) -> None:
    """A decision depends on the state alone."""
    begin(tmp_path, campaign(max_candidates=4))
    state = State()
    for record in read(tmp_path):
        state.apply(record)
        assert decide(state) == decide(state)
