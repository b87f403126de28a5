"""What is believed: facts with their provenance, and the evidence still to be learned from."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import to_json

from events.projections.tree import Node
from events.vocabulary import (
    CandidateExamined,
    CandidateId,
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactProposed,
    FactState,
    LearningRequested,
    Predicate,
    Sha,
)

Fact = FactLearned | FactProposed
BELIEF: tuple[FactState, ...] = ("confirmed", "stale", "proposed", "refuted")
"""States by what they are worth to whoever relies on a fact, the best first."""
N_FAILURES = 8
"""Latest sources that failed alike which a new rule must refuse."""


@dataclass(slots=True)
class Hits:
    """How a rule has done since it is in force."""

    n_refused: int = 0
    """Candidates that break it and were not built."""
    n_built_anyway: int = 0
    """Candidates that break it and were built, and built well or failed as it says."""
    n_false: int = 0
    """Those of them that built."""


class Failed(NamedTuple):
    """A failed build."""

    sort: str
    """``kernel:signature``."""
    evidence: CandidateExamined


@dataclass(slots=True)
class Failures:
    """Builds of one kernel that failed with one signature and got past all rules."""

    n: int = 0
    sources: dict[Sha, Sha] = field(default_factory=dict)
    """Latest sources that no rule refuses yet, by their normal form."""
    counterexamples: list[Sha] = field(default_factory=list)
    """Sources that a rule about it would have refused, and that build."""


@dataclass(slots=True)
class Knowledge:
    """Facts by their number."""

    facts: dict[int, Fact] = field(default_factory=dict)
    records: dict[int, int] = field(default_factory=dict)
    """Sequence number of the record that states a fact, by the fact's number."""
    states: dict[int, FactState] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    """How often a candidate cited a fact."""
    offers: list[FactProposed] = field(default_factory=list)
    """Claims of other runs that are not among the facts yet."""
    waiting: dict[int, None] = field(default_factory=dict)
    """Facts with a probe that is still to be run under the toolchain of now."""
    checked: dict[int, tuple[int, FactChecked]] = field(default_factory=dict)
    """What a probe did, with its record, until the fact is judged by it."""
    learned: dict[int, FactLearned] = field(default_factory=dict)
    """Rules that are still to be judged by their trials."""
    disproved: dict[int, tuple[int, CandidateId]] = field(default_factory=dict)
    """Rules in force that a candidate breaks and builds all the same, with the record of that."""
    hits: dict[int, Hits] = field(default_factory=dict)
    """What each rule did, by number of the fact."""
    failures: dict[str, Failures] = field(default_factory=dict)
    """Failed builds by ``kernel:signature``."""
    unread: dict[int, Failed] = field(default_factory=dict)
    """Failed builds that a rule is still to be learned from, by their record."""
    asked: dict[str, None] = field(default_factory=dict)
    """``kernel:topic`` of bound and noise facts that were asked for."""
    fitted: dict[str, None] = field(default_factory=dict)
    """Microbenchmarks that the keeper was asked about under the toolchain of now."""
    chain: bytes = bytes(32)
    """SHA-256 over the first `n_chained` facts."""
    n_chained: int = 0

    def digest(self) -> bytes:
        """SHA-256 over all facts; none changes, so each is hashed once."""
        while self.n_chained < len(self.facts):
            self.n_chained += 1
            fact = to_json((self.records[self.n_chained], self.facts[self.n_chained]))
            self.chain = hashlib.sha256(self.chain + fact).digest()
        return self.chain

    def learn(self, event: FactLearned, seq: int, *, is_current: bool) -> None:
        """What was seen gets the next number; a figure holds under the toolchain that showed it."""
        number = self._add(event, seq)
        self.states[number] = "confirmed" if is_current else "stale"
        if not is_current and event.probe is not None:
            self.waiting[number] = None
        elif is_current and event.topic == "rule":
            self.states[number] = "proposed"
            self.learned[number] = event

    def propose(self, event: FactProposed, seq: int) -> None:
        """What somebody claims gets the next number."""
        if event in self.offers:
            self.offers.remove(event)
        number = self._add(event, seq)
        self.states[number] = "proposed"
        if event.probe is not None:
            self.waiting[number] = None

    def request_check(self, event: FactCheckRequested) -> None:
        """A fact's probe is being run."""
        self.waiting.pop(event.fact, None)

    def check(self, event: FactChecked, seq: int, *, is_current: bool) -> None:
        """A fact's probe was run; under an earlier toolchain, it is still to be run."""
        if is_current:
            self.checked[event.fact] = (seq, event)
        else:
            self.waiting[event.fact] = None

    def judge(self, event: FactJudged) -> None:
        """A fact is believed, or not."""
        for waiting in (self.checked, self.learned, self.disproved):
            waiting.pop(event.fact, None)
        self.states[event.fact] = event.state
        fact = self.facts[event.fact]
        if isinstance(fact, FactLearned) and event.state == "confirmed":
            self._cover(fact)

    def _cover(self, rule: FactLearned) -> None:
        """A rule is in force: what it was tried on is done with; what came meanwhile waits.

        One for every kernel is taken to be about all failures with its signature: what still gets
        past it is to be learned from.
        """
        if rule.predicate is None or rule.probe is None:
            return
        own = _sort(rule.probe.kernel, rule.signature)
        for trial in rule.trials:
            self.failures.get(own, Failures()).sources.pop(trial.source, None)
        self._read(own)
        if rule.kernel:
            return
        for sort, failures in self.failures.items():
            if sort != own and sort.partition(":")[2] == rule.signature:
                failures.sources.clear()
                self._read(sort)

    def _read(self, sort: str) -> None:
        """Nothing more is to be learned from the failures that there are of one sort."""
        self.unread = {seq: f for seq, f in self.unread.items() if f.sort != sort}

    def cite(self, cites: Iterable[str]) -> None:
        """A candidate rests on facts; what agents make up is no fact."""
        for name in cites:
            number = int(name[1:]) if name[:1] == "f" and name[1:].isdecimal() else 0
            if number in self.facts:
                self.uses[number] = self.uses.get(number, 0) + 1

    def note_failure(self, event: CandidateExamined, node: Node, seq: int) -> None:
        """The build of a candidate failed: a rule is due after the 1st, 2nd, 4th, 8th... time.

        Nothing is to be learned from one that a rule in force would have refused.
        """
        if any(self._is_about(self.facts[n], event) for n in event.breaks):
            return
        failures = self.failures.setdefault(_sort(node.kernel, event.signature), Failures())
        failures.n += 1
        failures.sources.pop(node.normalized, None)
        failures.sources[node.normalized] = node.source
        if len(failures.sources) > N_FAILURES:
            del failures.sources[next(iter(failures.sources))]
        if failures.n.bit_count() == 1:
            self.unread[seq] = Failed(_sort(node.kernel, event.signature), event)

    def note_breaks(self, event: CandidateExamined, node: Node, seq: int) -> None:
        """A candidate breaks rules: it was refused for that, or built to see whether they hold.

        A build that fails for another reason does not say.
        """
        was_built = any(report.stage == "build" for report in event.stages)
        for number in event.breaks:
            hits, fact = self.hits.setdefault(number, Hits()), self.facts[number]
            hits.n_refused += not was_built
            hits.n_built_anyway += event.artifact is not None or self._is_about(fact, event)
            hits.n_false += event.artifact is not None
            if event.artifact is not None and isinstance(fact, FactLearned):
                self.disproved[number] = (seq, event.candidate)
                sort = _sort(node.kernel, fact.signature)
                self.failures.setdefault(sort, Failures()).counterexamples.append(node.source)

    @staticmethod
    def _is_about(fact: Fact, event: CandidateExamined) -> bool:
        """Whether a build failed as the sources did that a rule was learned from."""
        return isinstance(fact, FactLearned) and fact.signature == event.signature

    def failures_like(self, kernel: str, signature: str | None) -> Failures:
        """The failed builds of a kernel with one signature."""
        return self.failures.get(_sort(kernel, signature), Failures())

    def ask(self, event: LearningRequested) -> None:
        """The keeper is asked to learn, from all failures of a sort if it is about one."""
        if event.topic == "microbenchmark":
            self.fitted[event.microbenchmark] = None
            return
        self.asked[f"{event.kernel}:{event.topic}"] = None
        if event.topic == "rule":
            self._read(_sort(event.kernel, event.signature))

    def of(self, kernel: str) -> dict[int, Fact]:
        """The facts about one kernel or the whole target."""
        return {n: fact for n, fact in self.facts.items() if fact.kernel in (kernel, "")}

    def rules(self, kernel: str) -> dict[int, FactLearned]:
        """The legality rules in force for a kernel: what refuses sources before they are built."""
        return {n: rule for n, rule, _ in self._in_force() if rule.kernel in (kernel, "")}

    def likely(self, kernel: str, signature: str | None) -> tuple[Predicate, ...]:
        """What the rules of other kernels refuse sources on that failed with a signature."""
        return tuple(
            predicate
            for _, rule, predicate in self._in_force()
            if rule.signature == signature and rule.kernel not in (kernel, "")
        )

    def _in_force(self) -> Iterator[tuple[int, FactLearned, Predicate]]:
        """The rules that are confirmed, of every kernel, with what they refuse sources on."""
        for number, fact in self.facts.items():
            if (
                isinstance(fact, FactLearned)
                and fact.topic == "rule"
                and fact.predicate is not None
                and self.states[number] == "confirmed"
            ):
                yield number, fact, fact.predicate

    def outdate(self) -> None:
        """Take in that the toolchain has changed: what held under the last one may not hold now."""
        for number, fact in self.facts.items():
            self.states[number] = "stale"
            if fact.probe is not None:
                self.waiting[number] = None
        for waiting in (self.checked, self.learned, self.disproved, self.failures, self.unread):
            waiting.clear()
        self.asked.clear()
        self.fitted.clear()

    def _add(self, fact: Fact, seq: int) -> int:
        number = len(self.facts) + 1
        self.facts[number], self.records[number] = fact, seq
        return number


def _sort(kernel: str, signature: str | None) -> str:
    return f"{kernel}:{signature}"
