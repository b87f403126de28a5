"""What is believed: facts with their provenance, and the evidence still to be learned from."""

import hashlib
from dataclasses import dataclass, field

from pydantic_core import to_json

from events.vocabulary import CandidateExamined, FactLearned, LearningRequested


@dataclass(slots=True)
class Knowledge:
    """Facts by their number."""

    facts: dict[int, FactLearned] = field(default_factory=dict)
    records: dict[int, int] = field(default_factory=dict)
    """Sequence number of the record that states a fact, by the fact's number."""
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
    n_outdated: int = 0
    """Rules of facts up to this number are of an earlier toolchain."""

    def digest(self) -> bytes:
        """SHA-256 over all facts; none changes, so each is hashed once."""
        while self.n_chained < len(self.facts):
            self.n_chained += 1
            fact = to_json((self.records[self.n_chained], self.facts[self.n_chained]))
            self.chain = hashlib.sha256(self.chain + fact).digest()
        return self.chain

    def learn(self, event: FactLearned, seq: int) -> None:
        """A fact gets the next number."""
        number = len(self.facts) + 1
        self.facts[number], self.records[number] = event, seq

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

    def of(self, kernel: str) -> dict[int, FactLearned]:
        """The facts about one kernel, without rules of an earlier toolchain."""
        return {
            number: fact
            for number, fact in self.facts.items()
            if fact.kernel in (kernel, "") and (fact.topic != "rule" or number > self.n_outdated)
        }

    def forget_rules(self) -> None:
        """Take in that the toolchain has changed: what the last one refused may build now."""
        self.n_outdated = len(self.facts)
        self.fitted.clear()
        self.signatures.clear()
        self.unread.clear()
