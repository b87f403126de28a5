"""Legality rules of a run: who is told them, who applies them, and for how long."""

from dataclasses import replace
from pathlib import Path

from actors.commands import command
from decisions.brief import N_RULES, brief
from decisions.controls import reissue
from decisions.due import Due
from decisions.knowledge import judge
from decisions.learning import request as learning_due
from decisions.screening import rules, spared_by, twin
from events.blobs import Blobs
from events.campaign import KnowledgeSettings
from events.log import read
from events.projections.knowledge import Hits
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    CandidateExamined,
    Condition,
    FactJudged,
    FactLearned,
    LearningRequested,
    Predicate,
    Probe,
    Record,
    RunResumed,
    ScreeningRequested,
    StageReport,
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
            assert list(sent.rules) == known
            last = sent

    assert last is not None
    predicates = [rule.predicate for rule in last.rules.values()]
    assert predicates == [Predicate(conditions=(Condition(tokens=("broken",)),))]


def test_what_was_built_is_known_to_build(tmp_path: Path) -> None:
    """A line that one source may not hold, another one may: no rule is made of it."""
    begin(tmp_path, campaign())
    state, n_asked = State(), 0
    for record in read(tmp_path):
        if isinstance(record.event, LearningRequested) and record.event.topic == "rule":
            n_asked += 1
            nodes = [n for n in state.tree.nodes.values() if n.kernel == record.event.kernel]
            known = (n for n in nodes if n.is_search or n.form == "baseline")
            built = {node.source for node in known if node.artifact is not None}
            assert set(record.event.known_good) == built
            assert len(built) > 1
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
        rule = Predicate(conditions=(Condition(tokens=(f"word{i}",)),))
        fact = FactLearned(
            kernel="alpha",
            topic="rule",
            claim=f"no {i}",
            signature=f"no {i}",
            predicate=rule,
            toolchain=state.toolchain_digest,
        )
        seq, because = state.seq + 1, (state.seq,)
        state.apply(Record(seq=seq, time_ns=0, actor="keeper", because=because, event=fact))
        judged = FactJudged(fact=len(state.knowledge.facts), state="confirmed", reason="")
        state.apply(Record(seq=seq + 1, time_ns=0, actor="director", because=(), event=judged))
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
    assert state.knowledge.failures == {}
    assert {known.state for known in brief(state, turn).facts} == {"stale"}


def test_a_rule_that_refuses_what_builds_is_given_up(tmp_path: Path) -> None:
    """A few candidates are built although they break a rule, so that a wrong one does not stay."""
    state, _ = _with_rules(tmp_path, 1)
    number = len(state.knowledge.facts)
    node = next(n for n in state.tree.nodes.values() if n.is_search and n.artifact)
    examined = CandidateExamined(
        candidate=node.candidate,
        stages=(StageReport(stage="build", passed=True, detail="", wall_s=0.0),),
        fixtures=(),
        artifact="a" * 64,
        diagnostics=None,
        signature=None,
        breaks=(number,),
        toolchain="",
    )
    state.knowledge.note_breaks(examined, node, state.seq)
    assert state.knowledge.hits[number] == Hits(n_refused=0, n_built_anyway=1, n_false=1)

    due = judge(state)
    assert due is not None
    assert due.event == FactJudged(
        fact=number, state="refuted", reason=f"c{node.candidate} breaks it and builds"
    )
    seq = state.seq + 1
    state.apply(Record(seq=seq, time_ns=0, actor="director", because=(), event=due.event))
    assert number not in rules(state, node.candidate)
    assert judge(state) is None
    known = state.knowledge.failures_like("alpha", "no 0")
    assert known.counterexamples == [node.source]


def test_a_source_that_only_a_refuted_rule_refused_is_no_twin(tmp_path: Path) -> None:
    """It was never built, so that its verdict is none; who proposes it again is heard."""
    state, _ = _with_rules(tmp_path, 1)
    number = len(state.knowledge.facts)
    branch = state.tree.branches["alpha"]
    first = next(n for n in map(state.tree.nodes.get, branch.nodes) if n and n.is_search)
    again = replace(first, candidate=state.tree.next_id)
    state.tree.nodes[again.candidate] = again
    first.refused_by = (number,)
    branch.by_normalized[first.normalized] = [first.candidate, again.candidate]
    assert twin(state, again) == first.candidate

    state.knowledge.states[number] = "refuted"
    assert twin(state, again) is None


def test_some_candidates_are_built_whatever_rules_say(tmp_path: Path) -> None:
    """About one in sixteen, drawn from the secret seed; the target's own sources always.

    The more often a rule was right on one, the fewer there are.
    """
    state, _ = _with_rules(tmp_path, 2)
    new, tried = list(state.knowledge.facts)[-2:]
    state.knowledge.hits[tried] = Hits(n_built_anyway=3)
    node = next(n for n in state.tree.nodes.values() if n.is_search and n.kernel == "alpha")
    spared = []
    for candidate in range(8000):
        state.tree.nodes[candidate] = replace(node, candidate=candidate)
        spared.append(spared_by(state, state.tree.nodes[candidate]))

    assert 440 < sum(new in by for by in spared) < 560
    assert 95 < sum(tried in by for by in spared) < 155
    assert all(new in by for by in spared if tried in by)


def test_no_rule_refuses_the_target_s_own_sources(tmp_path: Path) -> None:
    """One that they break is wrong, however often it was right before."""
    state, _ = _with_rules(tmp_path, 2)
    own = [n for n in state.tree.nodes.values() if not n.is_search and n.kernel == "alpha"]

    assert own
    assert all(set(spared_by(state, n)) == rules(state, n.candidate).keys() for n in own)


def test_a_source_that_is_screened_again_is_spared_by_the_rules_of_now(tmp_path: Path) -> None:
    """Its worker was lost, and a rule has come since: it spares the target's own sources too."""
    state, _ = _with_rules(tmp_path, 1)
    own = next(n for n in state.tree.nodes.values() if not n.is_search and n.kernel == "alpha")
    asked = ScreeningRequested(
        candidate=own.candidate, kernel="alpha", source=own.source, twin=None, fixture_seeds=(1,)
    )
    state.lost[state.seq] = asked

    due = reissue(state)
    by = tuple(rules(state, own.candidate))
    assert by
    assert due == Due(asked.model_copy(update={"spared_by": by}), (state.seq,))


def _failed(node: Node, signature: str, breaks: tuple[int, ...] = ()) -> CandidateExamined:
    """A build that failed."""
    return CandidateExamined(
        candidate=node.candidate,
        stages=(StageReport(stage="build", passed=False, detail=signature, wall_s=0.0),),
        fixtures=(),
        artifact=None,
        diagnostics="d" * 64,
        signature=signature,
        breaks=breaks,
        toolchain="",
    )


def test_a_failure_that_breaks_a_rule_teaches_nothing(tmp_path: Path) -> None:
    """It was built to see whether the rule is right, and it is: the rule is not learned again."""
    state, _ = _with_rules(tmp_path, 1)
    node = next(n for n in state.tree.nodes.values() if n.is_search and n.artifact)
    examined = _failed(node, "no 0", breaks=(len(state.knowledge.facts),))
    state.knowledge.note_failure(examined, node, state.seq)
    assert state.knowledge.failures_like("alpha", "no 0").n == 0

    state.knowledge.note_failure(examined.model_copy(update={"breaks": ()}), node, state.seq)
    assert state.knowledge.failures_like("alpha", "no 0").n == 1


def test_a_failure_for_another_reason_says_nothing_of_a_rule(tmp_path: Path) -> None:
    """It is neither right nor wrong about it, and there is something to learn."""
    state, _ = _with_rules(tmp_path, 1)
    number = len(state.knowledge.facts)
    node = next(n for n in state.tree.nodes.values() if n.is_search and n.artifact)
    for signature, n_right in (("another", 0), ("no 0", 1)):
        examined = _failed(node, signature, breaks=(number,))
        state.knowledge.note_breaks(examined, node, state.seq)
        assert state.knowledge.hits[number].n_built_anyway == n_right
        state.knowledge.note_failure(examined, node, state.seq)

    assert state.knowledge.failures_like("alpha", "another").n == 1
    assert state.knowledge.failures_like("alpha", "no 0").n == 0


def test_a_rule_for_every_kernel_is_learned_once(tmp_path: Path) -> None:
    """Failures of other kernels that waited for it are done with; the next one is not."""
    state, _ = _with_rules(tmp_path, 0)
    node = next(n for n in state.tree.nodes.values() if n.is_search and n.artifact)
    failed = _failed(node, "too many")
    state.knowledge.note_failure(failed, node, 900)
    state.knowledge.note_failure(failed, replace(node, kernel="beta"), 901)
    assert {900, 901} <= state.knowledge.unread.keys()
    fact = FactLearned(
        kernel="",
        topic="rule",
        claim="no 9",
        signature="too many",
        predicate=Predicate(conditions=(Condition(tokens=("nine",)),)),
        probe=Probe(kernel="alpha", source="a" * 64, predicts="refused", signature="too many"),
        toolchain=state.toolchain_digest,
    )
    seq = state.seq + 1
    state.apply(Record(seq=seq, time_ns=0, actor="keeper", because=(state.seq,), event=fact))
    number = len(state.knowledge.facts)
    state.knowledge.judge(FactJudged(fact=number, state="confirmed", reason=""))

    assert not {900, 901} & state.knowledge.unread.keys()
    state.knowledge.note_failure(failed, replace(node, kernel="beta"), 902)
    assert 902 in state.knowledge.unread


def _with_failures(run: Path, kernel: str, *signatures: str) -> State:
    """An open run in which builds of a kernel have failed that nothing was learned from yet."""
    state, _ = _with_rules(run, 0)
    nodes = [n for n in state.tree.nodes.values() if n.is_search and n.kernel == kernel]
    state.closed = None
    state.pending.clear()
    failing = zip(nodes[: len(signatures)], signatures, strict=True)
    for seq, (node, signature) in enumerate(failing):
        normalized = replace(node, normalized=f"{seq}" * 64)
        state.knowledge.note_failure(_failed(node, signature), normalized, 900 + seq)
    return state


def test_what_most_failures_wait_for_is_learned_first(tmp_path: Path) -> None:
    """One rule is learned at a time, so that the others wait: the most frequent slip the least."""
    state = _with_failures(tmp_path, "alpha", "rare", "often", "often")
    due = learning_due(state)
    assert due is not None
    assert isinstance(due.event, LearningRequested)
    assert due.event.signature == "often"


def test_what_another_kernel_has_taught_is_tried_first(tmp_path: Path) -> None:
    """It takes no builds; so far as the rule is in force, and about the same signature."""
    state = _with_failures(tmp_path, "beta", "taught", "often", "often")
    predicate = Predicate(conditions=(Condition(tokens=("nine",)),))
    for signature in ("taught", "another"):
        fact = FactLearned(
            kernel="alpha", topic="rule", claim="no 9", signature=signature, predicate=predicate,
            toolchain=state.toolchain_digest,
        )  # fmt: skip
        record = Record(state.seq + 1, 0, "keeper", fact, (state.seq,))
        state.apply(record)
        number = len(state.knowledge.facts)
        state.knowledge.judge(FactJudged(fact=number, state="confirmed", reason=""))

    first = learning_due(state)
    assert first is not None
    assert isinstance(first.event, LearningRequested)
    assert (first.event.signature, first.event.likely) == ("taught", (predicate,))
    state.knowledge.states[len(state.knowledge.facts) - 1] = "refuted"
    second = learning_due(state)
    assert second is not None
    assert isinstance(second.event, LearningRequested)
    assert (second.event.signature, second.event.likely) == ("often", ())


def test_a_run_without_rules_learns_none(tmp_path: Path) -> None:
    """Who wants every source built can have it."""
    off = campaign().model_copy(update={"knowledge": KnowledgeSettings(rules=False)})
    begin(tmp_path, off)
    records = list(read(tmp_path))
    topics = [r.event.topic for r in records if isinstance(r.event, LearningRequested)]

    assert "rule" not in topics
    assert not any(isinstance(r.event, CandidateExamined) and r.event.breaks for r in records)
