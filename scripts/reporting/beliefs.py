"""What is believed of the target at the end of a log, and on what evidence."""

from dataclasses import dataclass
from typing import get_args

from events.projections.knowledge import Fact, Hits
from events.vocabulary import (
    CandidateProposed,
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactProposed,
    FactState,
    LearningRequested,
    Topic,
)
from scripts.reporting.history import Run

TOPICS: tuple[Topic, ...] = get_args(Topic)
STATES: tuple[FactState, ...] = get_args(FactState)


@dataclass(frozen=True)
class Belief:
    """A fact with its state, and what that rests on."""

    number: int
    fact: Fact
    state: FactState
    reason: str
    """Of its last verdict; "" if there was none."""
    toolchain: str
    """Digest of the one that it was last seen or checked under; "" if it never was."""
    evidence: tuple[int, ...]
    """Records that it rests on, in order: what showed it, what states it, checks and verdicts."""
    cited_by: tuple[int, ...]
    """Candidates."""
    hits: str
    """Rules: what it has refused, and how often wrongly; "" if nothing broke it."""

    @property
    def author(self) -> str:
        """Who claims it; "" for what the keeper has seen."""
        return self.fact.author if isinstance(self.fact, FactProposed) else ""


@dataclass
class _Course:
    """What the log says of one fact after its first record."""

    evidence: list[int]
    toolchain: str
    reason: str = ""


def beliefs(run: Run) -> tuple[Belief, ...]:
    """Return every fact in the order of its number."""
    knowledge = run.state.knowledge
    courses = {n: _begin(run, n) for n in knowledge.facts}
    for record in run.records:
        match record.event:
            case FactCheckRequested(fact=number):
                courses[number].evidence.append(record.seq)
            case FactChecked(fact=number, toolchain=toolchain):
                courses[number].evidence.append(record.seq)
                courses[number].toolchain = toolchain
            case FactJudged(fact=number, reason=reason):
                courses[number].evidence.append(record.seq)
                courses[number].reason = reason
            case _:
                pass
    cited = _cited(run)
    return tuple(
        Belief(
            number=number,
            fact=fact,
            state=knowledge.states[number],
            reason=courses[number].reason,
            toolchain=courses[number].toolchain,
            evidence=tuple(courses[number].evidence),
            cited_by=tuple(cited.get(f"f{number}", ())),
            hits=_hits(knowledge.hits.get(number)),
        )
        for number, fact in knowledge.facts.items()
    )


def by_topic(run: Run) -> dict[Topic, list[Belief]]:
    """Return the facts by what they are about; what nothing is known about is left out."""
    found: dict[Topic, list[Belief]] = {topic: [] for topic in TOPICS}
    for belief in beliefs(run):
        found[belief.fact.topic].append(belief)
    return {topic: own for topic, own in found.items() if own}


def _hits(hits: Hits | None) -> str:
    if hits is None:
        return ""
    tried = f"{hits.n_built_anyway} built all the same, {hits.n_false} of them without an error"
    return f"refused {hits.n_refused}, {tried}"


def _begin(run: Run, number: int) -> _Course:
    fact, seq = run.state.knowledge.facts[number], run.state.knowledge.records[number]
    because = run.records[seq].because
    shown = [
        earlier
        for cause in because
        if isinstance(run.records[cause].event, LearningRequested)
        for earlier in run.records[cause].because
    ]
    seen = fact.toolchain if isinstance(fact, FactLearned) else ""
    return _Course([*shown, *because, seq], seen)


def _cited(run: Run) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in run.records:
        if isinstance(record.event, CandidateProposed):
            for cite in dict.fromkeys(record.event.cites):
                found.setdefault(cite, []).append(record.event.candidate)
    return found
