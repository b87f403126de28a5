"""What is believed: facts with their provenance, and the evidence still to be learned from."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic_core import to_json

from events.vocabulary import (
    CandidateExamined,
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactProposed,
    FactState,
    LearningRequested,
)

Fact = FactLearned | FactProposed


@dataclass(slots=True)
class Knowledge:
    """Facts by their number."""

    facts: dict[int, Fact] = field(default_factory=dict)
    records: dict[int, int] = field(default_factory=dict)
    """Sequence number of the record that states a fact, by the fact's number."""
    states: dict[int, FactState] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    """How often a candidate cited a fact."""
    waiting: dict[int, None] = field(default_factory=dict)
    """Facts with a probe that is still to be run under the toolchain of now."""
    checked: dict[int, tuple[int, FactChecked]] = field(default_factory=dict)
    """What a probe did, with its record, until the fact is judged by it."""
    signatures: dict[str, None] = field(default_factory=dict)
    """``kernel:signature:certain text`` of build failures that were learned from, or are being."""
    unread: dict[int, CandidateExamined] = field(default_factory=dict)
    """Build failures with a new signature that nobody has learned from, by their record."""
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
        """What was seen gets the next number; it holds under the toolchain that showed it."""
        number = self._add(event, seq)
        self.states[number] = "confirmed" if is_current else "stale"
        if not is_current and event.probe is not None:
            self.waiting[number] = None

    def propose(self, event: FactProposed, seq: int) -> None:
        """What somebody claims gets the next number."""
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
        self.checked.pop(event.fact, None)
        self.states[event.fact] = event.state

    def cite(self, cites: Iterable[str]) -> None:
        """A candidate rests on facts; what agents make up is no fact."""
        for name in cites:
            number = int(name[1:]) if name[:1] == "f" and name[1:].isdecimal() else 0
            if number in self.facts:
                self.uses[number] = self.uses.get(number, 0) + 1

    def note_failure(self, event: CandidateExamined, kernel: str, seq: int) -> None:
        """The build of a candidate of ``kernel`` failed: note how, if that is new."""
        key = f"{kernel}:{event.signature}:{event.snippet if event.certain else ''}"
        if key not in self.signatures:
            self.signatures[key] = None
            self.unread[seq] = event

    def ask(self, event: LearningRequested, because: tuple[int, ...]) -> None:
        """The keeper is asked to learn from the records ``because``."""
        if event.topic == "microbenchmark":
            self.fitted[event.microbenchmark] = None
        else:
            self.asked[f"{event.kernel}:{event.topic}"] = None
        for seq in because:
            self.unread.pop(seq, None)

    def of(self, kernel: str) -> dict[int, Fact]:
        """The facts about one kernel or the whole target."""
        return {n: fact for n, fact in self.facts.items() if fact.kernel in (kernel, "")}

    def rules(self, kernel: str) -> dict[int, FactLearned]:
        """The legality rules that hold for a kernel under the toolchain of now."""
        return {
            number: fact
            for number, fact in self.facts.items()
            if isinstance(fact, FactLearned)
            and fact.topic == "rule"
            and fact.kernel == kernel
            and self.states[number] == "confirmed"
        }

    def outdate(self) -> None:
        """Take in that the toolchain has changed: what held under the last one may not hold now."""
        for number, fact in self.facts.items():
            self.states[number] = "stale"
            if fact.probe is not None:
                self.waiting[number] = None
        self.checked.clear()
        self.asked.clear()
        self.fitted.clear()
        self.signatures.clear()
        self.unread.clear()

    def _add(self, fact: Fact, seq: int) -> int:
        number = len(self.facts) + 1
        self.facts[number], self.records[number] = fact, seq
        return number
