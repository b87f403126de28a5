"""What must hold after every record of a run, whatever has gone wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

from events.projections.spending import Amount
from events.projections.state import State
from events.vocabulary import (
    CandidateAccepted,
    CandidateId,
    CandidateProposed,
    CandidateScreened,
    CandidateWithdrawn,
    Decision,
    JobFailed,
    MeasurementRequested,
    PairsMeasured,
    ProgramsMeasured,
    Record,
    Reply,
    Spend,
    TurnAssigned,
)

DIGEST_EVERY = 500
TOLERANCE_S = 1e-6


class ViolationError(Exception):
    """A record after which something does not hold that must.

    Attributes:
        seq: the record's number.
        rule: what must hold.
        found: what was found instead.
    """

    def __init__(self, seq: int, rule: str, found: str) -> None:
        super().__init__(seq, rule, found)
        self.seq, self.rule, self.found = seq, rule, found

    def __str__(self) -> str:
        return f"record {self.seq}: {self.rule}: {self.found}"


class Duel(NamedTuple):
    """A candidate and the best version that it was measured against."""

    candidate: CandidateId
    opponent: CandidateId


@dataclass
class Invariants:
    """Follows a run record by record, with a state of its own that nobody else can touch.

    Attributes:
        records: all that was acknowledged.
        state: folded from them.
    """

    records: list[Record] = field(default_factory=list)
    state: State = field(default_factory=State)
    _screened: set[CandidateId] = field(default_factory=set)
    _tested: dict[Duel, dict[int, PairsMeasured]] = field(default_factory=dict)
    """Answers of test jobs, then by record."""
    _line: dict[str, list[CandidateId]] = field(default_factory=dict)
    """Per kernel the best versions in order, from the baseline on, without withdrawn ones."""
    _correct: set[CandidateId] = field(default_factory=set)
    """Candidates whose outputs were right on the device."""
    _free_ns: int = 0
    """When the last device job was over."""
    _token: int = 0
    _excess: dict[str, float] = field(default_factory=dict)
    """What work took beyond its reservation, which its own time limit alone holds."""

    def follow(self, record: Record, live: State) -> None:
        """Take in a record that was just appended to the run whose state is ``live``.

        Raises:
            ViolationError: something does not hold after it.
        """
        self.take(record)
        if record.seq % DIGEST_EVERY == 0:
            self.agree(live)

    def take(self, record: Record) -> None:
        """Take in the next record.

        Raises:
            ViolationError: something does not hold after it.
        """
        if record.seq != len(self.records):
            due = f"{len(self.records)} was due"
            raise ViolationError(record.seq, "numbers follow on each other", due)
        asked = self._asked(record)
        before, toolchain = replace(self.state.spending.settled), self.state.toolchain_digest
        self.records.append(record)
        self.state.apply(record)
        if self.state.toolchain_digest != toolchain:
            self._screened.clear()
            self._tested.clear()
        match record.event:
            case MeasurementRequested():
                self._one_job(record)
            case TurnAssigned():
                self._in_time(record)
            case PairsMeasured() | ProgramsMeasured() | JobFailed() as event:
                self._exclusive(record, event)
            case _:
                pass
        if isinstance(asked, MeasurementRequested):
            self._measured(record, asked)
        if isinstance(asked, MeasurementRequested | TurnAssigned):
            self._paid(record, asked, before)
        if isinstance(record.event, get_args(Decision)):
            self._decided(record)

    def agree(self, live: State) -> None:
        """Compare the state of the run with that of its records.

        Raises:
            ViolationError: they differ.
        """
        if live.digest() != self.state.digest():
            raise ViolationError(self.state.seq, "replay equals the live state", "digests differ")

    def reread(self, records: Sequence[Record]) -> None:
        """Compare what is read from the log with what was acknowledged; take in what is new.

        Raises:
            ViolationError: something acknowledged is gone, or changed.
        """
        for kept, read in zip(self.records, records, strict=False):
            if kept != read:
                raise ViolationError(kept.seq, "nothing acknowledged is lost", "it has changed")
        if len(records) < len(self.records):
            gone = f"{len(self.records)} records were acknowledged"
            raise ViolationError(len(records), "nothing acknowledged is lost", gone)
        for record in records[len(self.records) :]:
            self.take(record)

    # ---- the rules -------------------------------------------------------------------------

    def _asked(self, record: Record) -> object:
        """The request that a reply answers; None for other records."""
        if not isinstance(record.event, Reply):
            return None
        request = self.state.pending.get(record.because[0]) if record.because else None
        if request is None:
            found = f"{record.event.kind} answers {record.because}"
            raise ViolationError(record.seq, "a request has one reply", found)
        return request

    def _one_job(self, record: Record) -> None:
        pending = self.state.pending.items()
        jobs = [seq for seq, request in pending if isinstance(request, MeasurementRequested)]
        if jobs != [record.seq]:
            raise ViolationError(record.seq, "the device has one job at a time", f"{jobs}")

    def _exclusive(
        self, record: Record, event: PairsMeasured | ProgramsMeasured | JobFailed
    ) -> None:
        began_ns = record.time_ns - round(event.device_s * 1e9)
        if began_ns < self._free_ns - TOLERANCE_S * 1e9:
            early = f"a job began {(self._free_ns - began_ns) / 1e9:.6f} s before that"
            raise ViolationError(record.seq, "a job begins when the last one is over", early)
        if isinstance(event, JobFailed):
            return
        if event.token <= self._token:
            found = f"{event.token} after {self._token}"
            raise ViolationError(record.seq, "tokens of the lease grow", found)
        self._token = event.token

    def _decided(self, record: Record) -> None:
        match record.event:
            case CandidateScreened(candidate=candidate, passed=True):
                self._screened.add(candidate)
                node = self.state.tree.nodes[candidate]
                if node.form == "baseline":
                    self._line.setdefault(node.kernel, [candidate])
            case CandidateProposed(form="step", parent=int(parent)):
                if parent not in self._correct:
                    found = f"c{parent} was not yet"
                    rule = "a parent of steps was correct on the device"
                    raise ViolationError(record.seq, rule, found)
            case CandidateAccepted() as event:
                self._supported(record, event)
            case CandidateWithdrawn() as event:
                self._withdrawn(event)
            case _:
                pass
        for kernel, branch in self.state.tree.branches.items():
            if branch.incumbent != (best := self._best(kernel)):
                found = f"c{branch.incumbent}, not c{best}, of {kernel}"
                raise ViolationError(record.seq, "one best version per kernel", found)

    def _withdrawn(self, event: CandidateWithdrawn) -> None:
        """Forget a best version, and old pairs against the one that is the best again."""
        nodes = self.state.tree.nodes
        line = self._line[nodes[event.candidate].kernel]
        line[:] = [candidate for candidate in line if candidate != event.candidate]
        for duel in [duel for duel in self._tested if duel.opponent == event.incumbent]:
            node = nodes[duel.candidate]
            if node.opponent != event.incumbent or not node.pairs:
                del self._tested[duel]

    def _best(self, kernel: str) -> CandidateId | None:
        return self._line[kernel][-1] if kernel in self._line else None

    def _supported(self, record: Record, event: CandidateAccepted) -> None:
        rule, kernel = "no accept without evidence", self.state.tree.nodes[event.candidate].kernel
        if event.candidate not in self._screened:
            raise ViolationError(record.seq, rule, f"c{event.candidate} never passed screening")
        if event.incumbent != self._best(kernel):
            raise ViolationError(record.seq, rule, f"c{event.incumbent} is not the best version")
        duel = self._tested.get(Duel(event.candidate, event.incumbent), {})
        n_pairs = sum(len(measured.pairs) for measured in duel.values())
        if n_pairs != event.n_pairs or not duel or not set(duel) <= set(record.because):
            found = f"{n_pairs} pairs in records {sorted(duel)}, cited {record.because}"
            raise ViolationError(record.seq, rule, found)
        if any(measured.candidate_margin > 1.0 for measured in duel.values()):
            raise ViolationError(record.seq, rule, "its outputs were wrong on the device")
        self._line[kernel].append(event.candidate)

    def _measured(self, record: Record, job: MeasurementRequested) -> None:
        self._free_ns, event = record.time_ns, record.event
        if not isinstance(event, PairsMeasured):
            return
        if max(event.candidate_margin, event.incumbent_margin) <= 1.0:
            self._correct |= {job.candidate, job.incumbent}
        if job.purpose == "test" and event.toolchain == self.state.toolchain_digest:
            duel = self._tested.setdefault(Duel(job.candidate, job.incumbent), {})
            duel[record.seq] = event

    def _paid(
        self, record: Record, asked: MeasurementRequested | TurnAssigned, before: Amount
    ) -> None:
        """What was reserved is all that may be spent, but for work that its time limit ended."""
        settled, budget = self.state.spending.settled, self.state.spending.limits
        before.add(asked.reserved)
        for name in Spend.model_fields:
            spent = getattr(settled, name)
            over = max(0, spent - getattr(before, name))
            self._excess[name] = self._excess.get(name, 0) + over
            limit = getattr(budget, name)
            if limit is not None and spent - self._excess[name] > limit + TOLERANCE_S:
                raise ViolationError(record.seq, "no budget is overspent", f"{name} {spent:g}")

    def _in_time(self, record: Record) -> None:
        limit_s, wall_s = self.state.spending.limits.wall_s, self.state.spending.wall_s
        if limit_s is not None and wall_s > limit_s:
            raise ViolationError(record.seq, "no budget is overspent", f"a turn at {wall_s:g} s")
