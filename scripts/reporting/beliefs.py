"""What is believed of the target at the end of a log, and on what evidence."""

from dataclasses import dataclass
from typing import get_args

from events.predicates import spelled
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
    Sha,
    Topic,
    TurnAssigned,
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
    hits: Hits | None
    """Rules: what it has refused, and how often wrongly; None if nothing broke it."""

    @property
    def rule(self) -> str:
        """What no source may hold, as people read it; "" for what refuses none."""
        fact = self.fact
        return spelled(fact.predicate) if isinstance(fact, FactLearned) and fact.predicate else ""

    @property
    def refusals(self) -> str:
        """The hits in words; "" if there are none."""
        if self.hits is None:
            return ""
        n_tried, n_false = self.hits.n_built_anyway, self.hits.n_false
        tried = f"{n_tried} built all the same, {n_false} of them without an error"
        return f"refused {self.hits.n_refused}, {tried}"

    @property
    def author(self) -> str:
        """Who claims it; "" for what the keeper has seen."""
        return self.fact.author if isinstance(self.fact, FactProposed) else ""


@dataclass(frozen=True)
class Document:
    """What became of the claims that an agent read in a document."""

    title: str
    n_claims: int
    n_checked: int
    """Of them confirmed or refuted under the toolchain of the end."""
    n_refuted: int


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
            hits=knowledge.hits.get(number),
        )
        for number, fact in knowledge.facts.items()
    )


def by_topic(run: Run) -> dict[Topic, list[Belief]]:
    """Return the facts by what they are about; what nothing is known about is left out."""
    found: dict[Topic, list[Belief]] = {topic: [] for topic in TOPICS}
    for belief in beliefs(run):
        found[belief.fact.topic].append(belief)
    return {topic: own for topic, own in found.items() if own}


def documents(run: Run) -> tuple[Document, ...]:
    """Return the documents of a run, in order, also those without a claim."""
    knowledge, told = run.state.knowledge, []
    passages = {n: _passage(run, seq) for n, seq in knowledge.records.items()}
    for document in run.state.begun.documents:
        states = [knowledge.states[n] for n, p in passages.items() if p in document.passages]
        n_refuted = states.count("refuted")
        n_checked = states.count("confirmed") + n_refuted
        told.append(Document(document.title, len(states), n_checked, n_refuted))
    return tuple(told)


def _passage(run: Run, seq: int) -> Sha | None:
    """What the author of a claim had read; None for every other fact."""
    reply = run.records[run.records[seq].because[0]] if run.records[seq].because else None
    turn = run.records[reply.because[0]].event if reply and reply.because else None
    return turn.passage if isinstance(turn, TurnAssigned) else None


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
