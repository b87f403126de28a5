"""The Design Tree: every candidate of every kernel, and the best version of each."""

import hashlib
import math
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic_core import to_json

from events.projections.agreement import Agreement, log_percent
from events.vocabulary import (
    CandidateAccepted,
    CandidateExamined,
    CandidateId,
    CandidateProposed,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    CandidateWithdrawn,
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
    Sha,
    StaticCost,
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
    WITHDRAWN = "withdrawn"
    """By a veto of the operator, or by a toolchain that refuses it."""
    CONTROL = "control"
    """The baseline, or a canary that has done its work."""


MODULUS = 2**256
OPEN = (Status.PROPOSED, Status.SCREENING, Status.EXAMINED, Status.QUEUED)


@dataclass(slots=True)
class Node:
    """One candidate.

    Its evidence since its last change of opponent is kept while it may go on; whoever wants that
    of a closed candidate reads the log.
    """

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
    """Steps that may be rebased: the reply that holds the edits."""
    models: dict[str, str] = field(default_factory=dict)
    """As of `CandidateProposed`."""
    status: Status = Status.PROPOSED
    artifact: Sha | None = None
    refused_by: tuple[int, ...] = ()
    """Legality rules that refused it before it was built, by number of the fact."""
    toolchain: str = ""
    """Digest of the fingerprint that screened it."""
    cost: StaticCost | None = None
    examined: CandidateExamined | None = None
    """Screening's evidence, until its verdict; a refused canary keeps it for its check."""
    evidence: tuple[int, ...] = ()
    """Records that the next decision about this candidate rests on."""
    opponent: CandidateId | None = None
    """The incumbent that `pairs` are against."""
    scale: tuple[float, float] | None = None
    pairs: tuple[Pair, ...] = ()
    coins_used: int = 0
    """Coins of answered jobs, void ones included; an opponent that comes back finds new ones."""
    failures: int = 0
    """Device jobs that gave no pairs, by any fault."""
    faults: int = 0
    """Those of them that were its own fault."""
    failed: JobFailed | None = None
    """The last job's failure, if nobody has decided about it."""
    device_s: float = 0.0
    """Of all jobs that compared it with an incumbent."""
    run_s: float | None = None
    """Last known seconds per launch, for planning and plots only."""
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

    def drop_evidence(self) -> None:
        """Let go of what only a candidate that goes on needs."""
        self.examined = self.failed = self.scale = None
        self.evidence = self.pairs = ()


@dataclass(slots=True)
class Branch:
    """One kernel's part of the tree. A dict to None is an ordered set."""

    baseline: CandidateId | None = None
    incumbent: CandidateId | None = None
    accepts: list[CandidateId] = field(default_factory=list)
    """Accepted versions in order, without vetoed ones."""
    nodes: list[CandidateId] = field(default_factory=list)
    by_normalized: dict[Sha, list[CandidateId]] = field(default_factory=dict)
    """Candidates per normalized source, in order."""
    open: dict[CandidateId, None] = field(default_factory=dict)
    """Candidates between proposal and verdict, in order of proposal."""
    shelved: dict[CandidateId, None] = field(default_factory=dict)
    """Shelved candidates that may go on against the best version."""
    expired: dict[CandidateId, None] = field(default_factory=dict)
    """Shelved designs whose opponent has been replaced: they may meet the best version."""
    n_started: int = 0
    """Tests begun: candidates that have met a best version, once for each that they met."""
    agreement: Agreement = field(default_factory=Agreement)
    n_designs: int = 0
    n_steps: int = 0
    n_rebased: int = 0
    """Steps that are an earlier one on a new parent; they do not count as proposals."""
    n_repaired: int = 0
    """Designs that are a refused one again; they count as proposals, not as another design."""
    finished: KernelFinished | None = None


@dataclass(slots=True)
class DesignTree:
    """All candidates of a run."""

    nodes: dict[CandidateId, Node] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    proposed: dict[CandidateId, None] = field(default_factory=dict)
    examined: dict[CandidateId, None] = field(default_factory=dict)
    stale: dict[CandidateId, None] = field(default_factory=dict)
    """Steps in flight whose parent was replaced, to be applied to the new best version."""
    rebased_onto: dict[CandidateId, CandidateId] = field(default_factory=dict)
    """New parents of stale steps."""
    reapplied: dict[CandidateId, tuple[int, Draft]] = field(default_factory=dict)
    """Stale steps on their new parent, with the record that says so."""
    vetoes: dict[CandidateId, tuple[int, str]] = field(default_factory=dict)
    """Candidates to be withdrawn: the record that says so, and why."""
    renewing: dict[CandidateId, None] = field(default_factory=dict)
    """Accepted versions that a new toolchain has not built and checked yet."""
    price: float | None = None
    """Price of a measurement after the last verdict; None before the first."""
    changed: dict[CandidateId, None] = field(default_factory=dict)
    """Candidates whose hash `total` lacks, because they are open or have changed."""
    total: int = 0
    """Sum of the hashes of all others, modulo 2**256."""

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
        """Speed-up over the baseline as claimed by the accepts on the way to ``candidate``.

        A version that was vetoed after another one had replaced it is still on the way.
        """
        total = 0.0
        node = self.nodes[candidate]
        while node.status in (Status.ACCEPTED, Status.WITHDRAWN) and node.opponent is not None:
            total -= node.effect or 0.0
            node = self.nodes[node.opponent]
        return math.exp(total / 100)

    def static_change(self, candidate: CandidateId, other: CandidateId) -> float | None:
        """Static change from ``other`` to ``candidate``, log-percent; negative is faster.

        None where a cost is missing, or where two toolchains made them.
        """
        node, base = self.nodes[candidate], self.nodes[other]
        if node.cost is None or base.cost is None or node.toolchain != base.toolchain:
            return None
        return log_percent(node.cost.cycles, base.cost.cycles)

    def digest(self) -> bytes:
        """Sum of the SHA-256 of every candidate, 32 bytes.

        A closed candidate is hashed once, and again after a change: the cost of a digest grows
        with what has happened since the last one, not with the run.
        """
        total_open = 0
        for candidate in tuple(self.changed):
            node = self.nodes[candidate]
            if node.status in OPEN:
                total_open += _hashed(node)
            else:
                self.total = (self.total + _hashed(node)) % MODULUS
                del self.changed[candidate]
        return ((self.total + total_open) % MODULUS).to_bytes(32)

    def propose(self, event: CandidateProposed, seq: int) -> None:
        """A candidate enters its kernel's branch."""
        candidate = event.candidate
        node = Node(
            candidate, event.kernel, event.form, event.parent, event.hypothesis,
            event.source, event.normalized, event.move, event.author, seq, event.reply,
            event.models,
        )  # fmt: skip
        self.nodes[candidate] = node
        self.changed[candidate] = self.proposed[candidate] = None
        branch = self.branches.get(node.kernel)
        if branch is None:
            branch = self.branches[node.kernel] = Branch()
        branch.nodes.append(candidate)
        branch.by_normalized.setdefault(node.normalized, []).append(candidate)
        if node.is_search:
            branch.open[candidate] = None
            branch.n_designs += node.form == "design"
            branch.n_steps += node.form == "step"
        elif node.form == "baseline":
            branch.baseline = candidate
        branch.n_repaired += event.repairs is not None
        if event.rebased_from is not None:
            branch.n_rebased += 1
            self.reapplied.pop(event.rebased_from, None)
            self.rebased_onto.pop(event.rebased_from, None)

    def screen(self, candidate: CandidateId) -> None:
        """A candidate is sent to the screening pool."""
        node = self._changing(candidate)
        self.proposed.pop(candidate, None)
        if candidate not in self.renewing:
            node.status = Status.SCREENING

    def screen_again(self, candidate: CandidateId) -> None:
        """What screening found is of an earlier toolchain."""
        self.proposed[candidate] = None
        if candidate not in self.renewing:
            self._changing(candidate).status = Status.PROPOSED

    def examine(self, event: CandidateExamined, seq: int) -> Node:
        """The evidence of screening is there; return its candidate."""
        candidate = event.candidate
        node = self._changing(candidate)
        node.examined, node.artifact = event, event.artifact
        node.toolchain, node.evidence, node.cost = event.toolchain, (seq,), event.cost
        was_built = any(report.stage == "build" for report in event.stages)
        node.refused_by = () if was_built else event.breaks
        self.examined[candidate] = None
        if candidate not in self.renewing:
            node.status = Status.EXAMINED
        return node

    def refuse_or_queue(self, event: CandidateScreened, seq: int) -> None:
        """Screening has its verdict."""
        if event.candidate in self.renewing:
            self._renew(event, seq)
            return
        if not event.passed:
            reason = f"refused at {event.stage}: {event.reason}"
            self.close(event.candidate, Status.REFUSED, reason, seq)
            return
        node = self._changing(event.candidate)
        self.examined.pop(event.candidate, None)
        node.status, node.decided, node.reason = Status.QUEUED, seq, event.reason
        node.drop_evidence()
        if node.form == "baseline":
            branch = self.branches[node.kernel]
            node.status, branch.incumbent = Status.CONTROL, branch.incumbent or node.candidate

    def _renew(self, event: CandidateScreened, seq: int) -> None:
        """An accepted version has its verdict under a new toolchain."""
        node = self._changing(event.candidate)
        del self.renewing[event.candidate], self.examined[event.candidate]
        node.drop_evidence()
        if not event.passed:
            why = f"refused at {event.stage} by the toolchain of now: {event.reason}"
            self.vetoes[event.candidate] = seq, why

    def oppose(self, event: MeasurementRequested) -> None:
        """A job is about to compare a candidate: note the opponent and the scale."""
        node, incumbent = self._changing(event.candidate), event.incumbent
        branch = self.branches[node.kernel]
        if node.opponent != incumbent:
            node.opponent, node.pairs, node.evidence = incumbent, (), ()
            branch.n_started += node.is_search
        if not node.pairs:
            node.n_pairs = 0
        node.scale, node.failed, node.status = event.scale, None, Status.QUEUED
        branch.shelved.pop(node.candidate, None)
        branch.expired.pop(node.candidate, None)
        if node.is_search:
            branch.open[node.candidate] = None

    def time(self, candidate: CandidateId, run_s: float) -> None:
        """A job has timed a candidate, in seconds per launch."""
        self._changing(candidate).run_s = run_s

    def compare(self, candidate: CandidateId, event: PairsMeasured, seq: int) -> None:
        """A candidate has more pairs against its opponent."""
        node, pairs = self._changing(candidate), event.pairs
        node.evidence += (seq,)
        node.pairs += pairs
        node.coins_used += len(pairs)
        node.device_s += event.device_s
        node.failed = None

    def fail(self, candidate: CandidateId, event: JobFailed, n_coins: int, seq: int) -> None:
        """A job that should have compared a candidate gave no pairs."""
        node = self._changing(candidate)
        node.evidence += (seq,)
        node.coins_used += n_coins
        node.failures += 1
        node.faults += event.arm == "candidate"
        node.device_s += event.device_s
        node.failed = event

    def waste(self, candidate: CandidateId, n_coins: int) -> None:
        """A job compared a candidate, but under a toolchain that is gone."""
        self._changing(candidate).coins_used += n_coins

    def accept(self, event: CandidateAccepted, seq: int) -> Node:
        """A candidate is the best version; return it. Those shelved against the last one expire."""
        node = self._judge(event, Status.ACCEPTED, seq)
        self._compare(node)
        branch = self.branches[node.kernel]
        branch.incumbent = event.candidate
        branch.accepts.append(event.candidate)
        for candidate in branch.shelved:
            shelved = self._changing(candidate)
            shelved.drop_evidence()
            if _may_meet_another(shelved):
                branch.expired[candidate] = None
        branch.shelved.clear()
        return node

    def reject(self, event: CandidateRejected, seq: int) -> None:
        """A candidate is not going on."""
        self._compare(self._judge(event, Status.REJECTED, seq))

    def shelve(self, event: CandidateShelved, seq: int) -> None:
        """A candidate is set aside, with its evidence if it may go on."""
        node = self._judge(event, Status.SHELVED, seq)
        branch, node.index = self.branches[node.kernel], event.index
        if node.form == "step" and node.reply and node.parent != branch.incumbent:
            self.stale[event.candidate] = None
        again = _may_meet_another(node)
        if node.opponent == branch.incumbent and (again or node.index is not None):
            branch.shelved[event.candidate] = None
        else:
            node.drop_evidence()
            if again:
                branch.expired[event.candidate] = None

    def withdraw(self, event: CandidateWithdrawn, seq: int) -> Node:
        """A candidate is out; return it. An earlier version may be the best one again."""
        candidate = event.candidate
        node = self.close(candidate, Status.WITHDRAWN, event.reason, seq)
        branch = self.branches[node.kernel]
        for waiting in (
            self.vetoes, self.stale, self.rebased_onto, self.reapplied,
            branch.shelved, branch.expired,
        ):  # fmt: skip
            waiting.pop(candidate, None)
        if candidate in branch.accepts:
            branch.accepts.remove(candidate)
        self.renewing.pop(candidate, None)
        if event.incumbent is not None:
            branch.incumbent = event.incumbent
            self._void(branch, candidate)
            self._owe(branch)
        return node

    def outdate(self) -> None:
        """Take in that the toolchain has changed.

        The target's own sources and the best versions are screened again, then what is open; what
        was refused, rejected or shelved may be proposed anew.
        """
        waiting = self.proposed
        self.proposed = {}
        for branch in self.branches.values():
            for candidate in branch.nodes:
                self._outdate(self._changing(candidate))
            branch.shelved.clear()
            branch.expired.clear()
            self._owe(branch)
        self.proposed |= waiting

    def _outdate(self, node: Node) -> None:
        node.artifact = node.opponent = node.cost = None
        node.n_pairs = 0
        node.drop_evidence()
        self.examined.pop(node.candidate, None)
        is_own = not node.is_search and node.status is not Status.SCREENING
        if is_own or node.status in (Status.EXAMINED, Status.QUEUED):
            node.status = Status.PROPOSED
            self.proposed[node.candidate] = None

    def _owe(self, branch: Branch) -> None:
        """The best version is built and checked before anything is compared with it."""
        best = branch.incumbent
        if best is not None and best != branch.baseline and self.nodes[best].artifact is None:
            self.renewing[best] = self.proposed[best] = None

    def _void(self, branch: Branch, opponent: CandidateId) -> None:
        """Verdicts against a withdrawn best version do not stand; designs meet the next one."""
        branch.shelved.clear()
        for candidate in branch.nodes:
            node = self.nodes[candidate]
            if node.opponent == opponent and node.status in (Status.SHELVED, Status.REJECTED):
                self._changing(candidate).drop_evidence()
                if _may_meet_another(node):
                    branch.expired[candidate] = None

    def request_rebase(self, event: RebaseRequested) -> None:
        """A stale step is being applied to the new best version."""
        self.stale.pop(event.candidate, None)
        self.rebased_onto[event.candidate] = event.onto

    def rebase(self, event: EditsReapplied, seq: int) -> None:
        """A stale step fits the new best version, or does not."""
        if isinstance(event.outcome, Draft):
            self.reapplied[event.candidate] = (seq, event.outcome)
        else:
            self.rebased_onto.pop(event.candidate, None)

    def control(self, event: HarnessChecked, seq: int) -> None:
        """A canary has done its work."""
        for candidate in self.branches[event.kernel].nodes[:3]:
            if self.nodes[candidate].form == event.control:
                self.close(candidate, Status.CONTROL, event.reason, seq)

    def close(self, candidate: CandidateId, status: Status, reason: str, seq: int) -> Node:
        """A candidate has a verdict; return it."""
        node = self._changing(candidate)
        node.status, node.reason, node.decided = status, reason, seq
        self.proposed.pop(candidate, None)
        self.examined.pop(candidate, None)
        self.branches[node.kernel].open.pop(candidate, None)
        if node.is_search and status is not Status.SHELVED:
            node.drop_evidence()
            node.reply = None
        return node

    def _judge(
        self,
        event: CandidateAccepted | CandidateRejected | CandidateShelved,
        status: Status,
        seq: int,
    ) -> Node:
        node = self.close(event.candidate, status, event.reason, seq)
        node.capital, node.effect, node.n_pairs = event.capital, event.effect, event.n_pairs
        node.low, node.high, self.price = event.low, event.high, event.next_price
        return node

    def _compare(self, node: Node) -> None:
        """Hold what the device found of a candidate against its static cost."""
        if node.opponent is None or node.effect is None:
            return
        change = self.static_change(node.candidate, node.opponent)
        if change is not None:
            self.branches[node.kernel].agreement.compare(change, node.effect)

    def _changing(self, candidate: CandidateId) -> Node:
        """The node of a candidate that is about to change."""
        node = self.nodes[candidate]
        if candidate not in self.changed:
            self.total = (self.total - _hashed(node)) % MODULUS
            self.changed[candidate] = None
        return node


def _hashed(node: Node) -> int:
    return int.from_bytes(hashlib.sha256(to_json(node)).digest())


def _may_meet_another(node: Node) -> bool:
    """Whether a closed candidate gets a second chance when its opponent is replaced.

    Steps do not: their edits are proposed again on every best version.
    """
    return node.form == "design" and node.failures == 0
