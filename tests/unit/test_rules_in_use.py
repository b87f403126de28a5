"""Legality rules of a run: who is told them, who applies them, and for how long."""

from pathlib import Path

from actors.commands import command
from decisions.brief import N_RULES, brief
from decisions.screening import rules
from events.blobs import Blobs
from events.log import read
from events.projections.state import State
from events.vocabulary import (
    FactLearned,
    LearningRequested,
    Record,
    RunResumed,
    ScreeningRequested,
    TurnAssigned,
)
from tests.support.runs import begin, campaign


def test_a_screening_worker_is_told_the_rules_of_its_time(tmp_path: Path) -> None:
    """They follow from the log before the request, so the request does not repeat them."""
    begin(tmp_path, campaign())
    state, last = State(), None
    for record in read(tmp_path):
        state.apply(record)
        if isinstance(record.event, ScreeningRequested) and record.event.kernel == "alpha":
            sent = command(state, record.seq, record.seq, record.event, Blobs(tmp_path))
            known = [n for n, fact in state.knowledge.facts.items()
                     if (fact.kernel, fact.topic) == ("alpha", "rule")]  # fmt: skip
            searched = state.tree.nodes[record.event.candidate].is_search
            assert list(sent.rules) == (known if searched else [])
            last = sent

    assert last is not None
    assert [rule.snippet for rule in last.rules.values()] == ["broken"]


def test_what_was_built_is_known_to_build(tmp_path: Path) -> None:
    """A line that one source may not hold, another one may: no rule is made of it."""
    begin(tmp_path, campaign())
    state, n_asked = State(), 0
    for record in read(tmp_path):
        if isinstance(record.event, LearningRequested) and record.event.topic == "rule":
            n_asked += 1
            nodes = [n for n in state.tree.nodes.values() if n.kernel == record.event.kernel]
            built = {node.source for node in nodes if node.artifact is not None}
            assert set(record.event.known_good) == built
            assert len(built) > 3
        state.apply(record)

    assert n_asked == 2


def _with_rules(run: Path, n: int) -> tuple[State, TurnAssigned]:
    """The state of a run that has learned many rules, and a turn of it."""
    begin(run, campaign())
    state, turn = State(), None
    for record in read(run):
        state.apply(record)
        turn = record.event if isinstance(record.event, TurnAssigned) else turn
    for i in range(n):
        fact = FactLearned(
            kernel="alpha",
            topic="rule",
            claim=f"no {i}",
            snippet=f"word{i}",
            toolchain=state.toolchain_digest,
        )
        seq, because = state.seq + 1, (state.seq,)
        state.apply(Record(seq=seq, time_ns=0, actor="keeper", because=because, event=fact))
    assert turn is not None
    return state, turn.model_copy(update={"kernel": "alpha"})


def test_a_prompt_holds_the_latest_rules_only(tmp_path: Path) -> None:
    """Thousands of candidates fail in hundreds of ways; screening still applies every rule."""
    state, turn = _with_rules(tmp_path, 300)
    claims = [known.claim for known in brief(state, turn).facts]

    assert sum(claim.startswith("no ") for claim in claims) == N_RULES
    assert claims[-1] == "no 299"
    assert any("log-percent within a pair" in claim for claim in claims)
    searched = next(n for n in state.tree.nodes.values() if n.is_search and n.kernel == "alpha")
    assert len(rules(state, searched.candidate)) == 301


def test_rules_end_with_their_toolchain(tmp_path: Path) -> None:
    """A new compiler may build what the old one refused, so prompts mark what was learned of it."""
    state, turn = _with_rules(tmp_path, 3)
    for toolchain, n_left in (({"compiler": "fake 1.0"}, 4), ({"compiler": "fake 2.0"}, 0)):
        mark = RunResumed(versions={}, toolchain=toolchain)
        state.apply(Record(seq=state.seq + 1, time_ns=0, actor="director", event=mark))

        assert len(state.knowledge.rules("alpha")) == n_left
    assert state.knowledge.signatures == {}
    assert {known.state for known in brief(state, turn).facts} == {"stale"}
