"""The device ledger: jobs, A/A pairs, bounds, what each kernel has cost."""

from collections import deque
from dataclasses import dataclass, field

from events.projections.tree import DesignTree
from events.vocabulary import (
    BoundMeasured,
    CandidateId,
    HarnessChecked,
    JobFailed,
    MeasurementRequested,
    Pair,
    PairsMeasured,
    Record,
    RunStarted,
    WorkAbandoned,
)

MAX_AA_PAIRS = 200


@dataclass
class KernelLedger:
    """One kernel's device work."""

    aa: dict[CandidateId, deque[Pair]] = field(default_factory=dict)
    """A/A pairs per incumbent, the last 200 of each."""
    aa_seqs: list[int] = field(default_factory=list)
    aa_coins: int = 0
    """Coins of answered A/A jobs, void ones included."""
    noise_failures: int = 0
    """A/A jobs in a row that failed: the best version cannot be compared with itself."""
    since_sentinel: int = 0
    """Test pairs since the last sentinel."""
    bound_of: CandidateId | None = None
    """The incumbent that the last bound job ran beside."""
    bounds_s: dict[str, float] = field(default_factory=dict)
    bound_incumbent_s: float | None = None
    bound_seq: int | None = None
    bound_failures: int = 0
    """Bound jobs in a row that failed."""
    run_s: dict[CandidateId, float] = field(default_factory=dict)
    """Last known seconds per launch, for planning and plots only."""
    final: list[Pair] = field(default_factory=list)
    final_seqs: list[int] = field(default_factory=list)
    final_coins: int = 0
    final_failures: int = 0
    controls: dict[str, bool] = field(default_factory=dict)
    device_s: float = 0.0
    job_s: float | None = None
    """Longest job that gave a reading; one that hung says nothing about the next."""

    @property
    def time_over_bound(self) -> float | None:
        """Incumbent's time over the fastest load-only variant's, from one interleaved job."""
        if self.bound_incumbent_s is None or not self.bounds_s:
            return None
        return self.bound_incumbent_s / min(self.bounds_s.values())


@dataclass
class DeviceLedger:
    """All device work of a run."""

    kernels: dict[str, KernelLedger] = field(default_factory=dict)
    jobs: int = 0
    """Jobs that have a reply."""
    running: MeasurementRequested | None = None
    running_seq: int = -1
    candidate_pairs: int = 0

    def of(self, kernel: str) -> KernelLedger:
        """The ledger of one kernel; reading makes none, or decisions would change the state."""
        return self.kernels[kernel]

    def apply(self, record: Record, tree: DesignTree) -> None:
        """Take in one record, and hand device replies on to the candidate they are about."""
        match record.event:
            case RunStarted(campaign=campaign):
                self.kernels = {kernel: KernelLedger() for kernel in campaign.kernels}
            case MeasurementRequested() as event:
                self.running, self.running_seq = event, record.seq
                if event.purpose in ("test", "canary"):
                    tree.opposed(event)
            case PairsMeasured() as event:
                self._pairs(event, record.seq, tree)
            case BoundMeasured() as event:
                self._bound(event, record.seq)
            case JobFailed() as event:
                self._failed(event, record.seq, tree)
            case WorkAbandoned(job=int() as job, reason=reason):
                lost = JobFailed(job=job, arm="device", reason=reason, device_s=0.0)
                self._failed(lost, record.seq, tree)
            case HarnessChecked() as event:
                ledger = self.of(event.kernel)
                ledger.controls[event.control] = event.passed
            case _:
                pass

    def _done(self, device_s: float) -> tuple[MeasurementRequested, KernelLedger]:
        job = self.running
        if job is None:
            raise LookupError("a device reply without a running job")
        self.running = None
        self.jobs += 1
        ledger = self.of(job.kernel)
        ledger.device_s += device_s
        return job, ledger

    def _pairs(self, event: PairsMeasured, seq: int, tree: DesignTree) -> None:
        job, ledger = self._done(event.device_s)
        ledger.job_s = max(ledger.job_s or 0.0, event.device_s)
        last = event.pairs[-1]
        ledger.run_s[job.incumbent] = last.incumbent_s
        ledger.run_s[job.candidate] = last.candidate_s
        match job.purpose:
            case "noise" | "sentinel":
                pairs = ledger.aa.setdefault(job.incumbent, deque(maxlen=MAX_AA_PAIRS))
                pairs.extend(event.pairs)
                ledger.aa_seqs.append(seq)
                ledger.aa_coins += len(event.pairs)
                ledger.since_sentinel = ledger.noise_failures = 0
            case "test" | "canary":
                tree.measured(job.candidate, event, seq)
                ledger.since_sentinel += len(event.pairs)
                self.candidate_pairs += len(event.pairs)
            case "final":
                ledger.final.extend(event.pairs)
                ledger.final_coins += len(event.pairs)
                ledger.final_seqs.append(seq)
            case "bound":
                pass

    def _bound(self, event: BoundMeasured, seq: int) -> None:
        job, ledger = self._done(event.device_s)
        ledger.job_s = max(ledger.job_s or 0.0, event.device_s)
        ledger.bound_of, ledger.bound_seq, ledger.bound_failures = job.incumbent, seq, 0
        ledger.bounds_s = dict(event.bounds_s)
        ledger.bound_incumbent_s = event.incumbent_s
        ledger.run_s[job.incumbent] = event.incumbent_s

    def _failed(self, event: JobFailed, seq: int, tree: DesignTree) -> None:
        job, ledger = self._done(event.device_s)
        match job.purpose:
            case "noise" | "sentinel":
                ledger.noise_failures += 1
                ledger.aa_coins += len(job.coins)
            case "test" | "canary":
                tree.measured(job.candidate, event, seq)
                tree.nodes[job.candidate].coins_used += len(job.coins)
            case "final":
                ledger.final_failures += 1
                ledger.final_coins += len(job.coins)
            case "bound":
                ledger.bound_failures += 1
