"""The Design Tree: every candidate of every kernel, and the best version of each."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from events.vocabulary import (
    AnyEvent,
    CandidateAccepted,
    CandidateExamined,
    CandidateId,
    CandidateProposed,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    Draft,
    EditsReapplied,
    Form,
    HarnessChecked,
    JobFailed,
    KernelFinished,
    MeasurementRequested,
    Pair,
    PairsMeasured,
    RebaseRequested,
    Record,
    ScreeningRequested,
    Sha,
    WorkAbandoned,
)


class Status(StrEnum):
    """Where a candidate is in its life."""

    PROPOSED = "proposed"
    SCREENING = "screening"
    EXAMINED = "examined"
    QUEUED = "queued"
    """Passed screening; waits for the device, or is being measured."""
    REFUSED = "refused"
    """By screening."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SHELVED = "shelved"
    CONTROL = "control"
    """The baseline, or a canary that has done its work."""


OPEN = (Status.PROPOSED, Status.SCREENING, Status.EXAMINED, Status.QUEUED)


@dataclass
class Node:
    """One candidate, with the evidence since its last change of opponent."""

    candidate: CandidateId
    kernel: str
    form: Form
    parent: CandidateId | None
    hypothesis: str
    source: Sha
    normalized: Sha
    move: str
    author: str
    proposed: int
    """Sequence number of the proposal."""
    reply: Sha | None = None
    """Steps: the reply that holds the edits."""
    status: Status = Status.PROPOSED
    examined: CandidateExamined | None = None
    evidence: list[int] = field(default_factory=list)
    """Records that the next decision about this candidate rests on."""
    artifact: Sha | None = None
    opponent: CandidateId | None = None
    """The incumbent that `pairs` are against."""
    scale: tuple[float, float] | None = None
    pairs: list[Pair] = field(default_factory=list)
    coins_used: int = 0
    """Coins of answered jobs against `opponent`, void ones included."""
    failures: int = 0
    """Device jobs that gave no pairs, by any fault."""
    faults: int = 0
    """Those of them that were its own fault."""
    failed: JobFailed | None = None
    """The last job's failure, if nobody has decided about it."""
    device_s: float = 0.0
    capital: float = 1.0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    n_pairs: int = 0
    """Pairs against `opponent` behind the last verdict."""
    index: float | None = None
    """Shelved by the price: expected gain per measurement of going on, log-percent."""
    reason: str = ""
    decided: int | None = None
    """Record of the last verdict."""

    @property
    def is_search(self) -> bool:
        """Whether the search proposed it, rather than the target."""
        return self.form in ("design", "step")


@dataclass
class Branch:
    """One kernel's part of the tree."""

    baseline: CandidateId | None = None
    incumbent: CandidateId | None = None
    accepts: list[CandidateId] = field(default_factory=list)
    nodes: list[CandidateId] = field(default_factory=list)
    open: dict[CandidateId, None] = field(default_factory=dict)
    """Candidates between proposal and verdict, in order of proposal (a dict as an ordered set)."""
    shelved: dict[CandidateId, None] = field(default_factory=dict)
    n_designs: int = 0
    n_steps: int = 0
    n_rebased: int = 0
    """Steps that are an earlier one on a new parent; they do not count as proposals."""
    finished: KernelFinished | None = None


@dataclass
class DesignTree:
    """All candidates of a run."""

    nodes: dict[CandidateId, Node] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    by_normalized: dict[str, list[CandidateId]] = field(default_factory=dict)
    """Candidates per ``kernel:normalized source``, in order."""
    proposed: dict[CandidateId, None] = field(default_factory=dict)
    examined: dict[CandidateId, None] = field(default_factory=dict)
    stale: dict[CandidateId, None] = field(default_factory=dict)
    """Steps in flight whose parent was replaced, to be applied to the new best version."""
    rebased_onto: dict[CandidateId, CandidateId] = field(default_factory=dict)
    """New parents of stale steps."""
    reapplied: dict[CandidateId, tuple[int, Draft]] = field(default_factory=dict)
    """Stale steps on their new parent, with the record that says so."""
    price: float | None = None
    """Price of a measurement after the last verdict; None before the first."""

    @property
    def next_id(self) -> CandidateId:
        """Number of the next candidate."""
        return len(self.nodes) + 1

    @property
    def n_search(self) -> int:
        """Candidates proposed by the search."""
        return sum(b.n_designs + b.n_steps - b.n_rebased for b in self.branches.values())

    def incumbent(self, kernel: str) -> Node:
        """The best version of a kernel; its baseline must have passed screening."""
        best = self.branches[kernel].incumbent
        if best is None:
            raise LookupError(f"{kernel} has no best version yet")
        return self.nodes[best]

    def speedup(self, candidate: CandidateId) -> float:
        """Speed-up over the baseline as claimed by the accepts on the way to ``candidate``."""
        total = 0.0
        node = self.nodes[candidate]
        while node.status is Status.ACCEPTED and node.opponent is not None:
            total -= node.effect or 0.0
            node = self.nodes[node.opponent]
        return math.exp(total / 100)

    def apply(self, record: Record) -> None:
        """Take in one record."""
        match record.event:
            case CandidateProposed() as event:
                self._propose(event, record.seq)
            case ScreeningRequested(candidate=candidate):
                self.nodes[candidate].status = Status.SCREENING
                self.proposed.pop(candidate, None)
            case CandidateExamined() as event:
                self._examine(event, record.seq)
            case CandidateScreened() as event:
                self._screen(event, record.seq)
            case WorkAbandoned(candidate=int() as candidate, reason=reason):
                self._close(candidate, Status.REFUSED, reason, record.seq)
            case RebaseRequested() | EditsReapplied() as event:
                self._rebase(event, record.seq)
            case HarnessChecked() as event:
                self._control(event, record.seq)
            case CandidateAccepted() | CandidateRejected() | CandidateShelved() as event:
                self._judge(event, record.seq)
            case KernelFinished() as event:
                self.branches[event.kernel].finished = event
            case _:
                pass

    def measured(self, candidate: CandidateId, event: AnyEvent, seq: int) -> None:
        """Take in a device reply about ``candidate``; called by the ledger, which knows the job."""
        node = self.nodes[candidate]
        node.evidence.append(seq)
        if isinstance(event, PairsMeasured):
            node.pairs.extend(event.pairs)
            node.coins_used += len(event.pairs)
            node.device_s += event.device_s
            node.failed = None
        elif isinstance(event, JobFailed):
            node.failures += 1
            node.faults += event.arm == "candidate"
            node.failed = event
            node.device_s += event.device_s

    def opposed(self, event: MeasurementRequested) -> None:
        """A job is about to compare a candidate: note the opponent and the scale."""
        node = self.nodes[event.candidate]
        if node.opponent != event.incumbent:
            node.opponent, node.pairs, node.coins_used = event.incumbent, [], 0
            node.evidence, node.n_pairs = [], 0
        node.scale = event.scale
        node.failed = None
        node.status = Status.QUEUED
        branch = self.branches[node.kernel]
        branch.shelved.pop(node.candidate, None)
        if node.is_search:
            branch.open[node.candidate] = None

    def _propose(self, event: CandidateProposed, seq: int) -> None:
        node = Node(
            event.candidate, event.kernel, event.form, event.parent, event.hypothesis,
            event.source, event.normalized, event.move, event.author, seq, event.reply,
        )  # fmt: skip
        self.nodes[event.candidate] = node
        self.proposed[event.candidate] = None
        branch = self.branches.setdefault(event.kernel, Branch())
        branch.nodes.append(event.candidate)
        same = self.by_normalized.setdefault(f"{event.kernel}:{event.normalized}", [])
        same.append(event.candidate)
        match event.form:
            case "baseline":
                branch.baseline = event.candidate
            case "design":
                branch.n_designs += 1
            case "step":
                branch.n_steps += 1
                if event.rebased_from is not None:
                    branch.n_rebased += 1
                    self.reapplied.pop(event.rebased_from, None)
            case _:
                pass
        if node.is_search:
            branch.open[event.candidate] = None

    def _examine(self, event: CandidateExamined, seq: int) -> None:
        node = self.nodes[event.candidate]
        node.status, node.examined, node.artifact = Status.EXAMINED, event, event.artifact
        node.evidence = [seq]
        self.examined[event.candidate] = None

    def _screen(self, event: CandidateScreened, seq: int) -> None:
        node = self.nodes[event.candidate]
        self.examined.pop(event.candidate, None)
        if not event.passed:
            where = f"refused at {event.stage}: {event.reason}"
            self._close(event.candidate, Status.REFUSED, where, seq)
            return
        node.status, node.decided, node.reason = Status.QUEUED, seq, event.reason
        node.evidence = []
        if node.form == "baseline":
            node.status = Status.CONTROL
            self.branches[node.kernel].incumbent = node.candidate

    def _judge(
        self, event: CandidateAccepted | CandidateRejected | CandidateShelved, seq: int
    ) -> None:
        node = self.nodes[event.candidate]
        node.capital, node.effect, node.n_pairs = event.capital, event.effect, event.n_pairs
        node.low, node.high, self.price = event.low, event.high, event.next_price
        branch = self.branches[node.kernel]
        match event:
            case CandidateAccepted():
                self._close(event.candidate, Status.ACCEPTED, event.reason, seq)
                branch.incumbent = event.candidate
                branch.accepts.append(event.candidate)
            case CandidateRejected():
                self._close(event.candidate, Status.REJECTED, event.reason, seq)
            case CandidateShelved():
                self._close(event.candidate, Status.SHELVED, event.reason, seq)
                branch.shelved[event.candidate], node.index = None, event.index
                if node.form == "step" and node.reply and node.parent != branch.incumbent:
                    self.stale[event.candidate] = None

    def _rebase(self, event: RebaseRequested | EditsReapplied, seq: int) -> None:
        if isinstance(event, RebaseRequested):
            self.stale.pop(event.candidate, None)
            self.rebased_onto[event.candidate] = event.onto
        elif isinstance(event.outcome, Draft):
            self.reapplied[event.candidate] = (seq, event.outcome)

    def _control(self, event: HarnessChecked, seq: int) -> None:
        for candidate in self.branches[event.kernel].nodes[:3]:
            if self.nodes[candidate].form == event.control:
                self._close(candidate, Status.CONTROL, event.reason, seq)

    def _close(self, candidate: CandidateId, status: Status, reason: str, seq: int) -> None:
        node = self.nodes[candidate]
        node.status, node.reason, node.decided = status, reason, seq
        self.proposed.pop(candidate, None)
        self.examined.pop(candidate, None)
        self.branches[node.kernel].open.pop(candidate, None)
