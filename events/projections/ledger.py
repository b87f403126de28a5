"""The device ledger: jobs, A/A pairs, bounds, what each kernel has cost."""

from collections import deque
from dataclasses import dataclass, field

from events.vocabulary import (
    CandidateId,
    HarnessChecked,
    MeasurementRequested,
    Pair,
    PairsMeasured,
    ProgramsMeasured,
)

MAX_AA_PAIRS = 200


@dataclass(slots=True)
class KernelLedger:
    """One kernel's device work."""

    aa: deque[Pair] = field(default_factory=lambda: deque(maxlen=MAX_AA_PAIRS))
    """The last A/A pairs, whatever the best version was."""
    n_aa: int = 0
    """A/A pairs so far."""
    aa_of: CandidateId | None = None
    """The incumbent of the last A/A pair."""
    n_own_aa: int = 0
    """A/A pairs of that incumbent so far."""
    aa_seqs: deque[int] = field(default_factory=lambda: deque(maxlen=MAX_AA_PAIRS))
    """Records of the last A/A pairs."""
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
    final: list[Pair] = field(default_factory=list)
    final_seqs: list[int] = field(default_factory=list)
    final_coins: int = 0
    final_failures: int = 0
    probe_job_s: float | None = None
    """Longest probe job that gave a reading; it has more arms than others."""
    controls: dict[str, bool] = field(default_factory=dict)
    device_s: float = 0.0
    job_s: float | None = None
    """Longest job that gave a reading; one that hung says nothing about the next."""
    n_jobs: int = 0
    """Jobs that gave a reading, `jobs_s` long together; probe jobs are not among them."""
    jobs_s: float = 0.0

    @property
    def mean_job_s(self) -> float:
        """Length of a job that gives a reading; 0 if none did.

        The first job of a new program may be far longer than those that follow.
        """
        return self.jobs_s / self.n_jobs if self.n_jobs else 0.0

    def add_job(self, device_s: float) -> None:
        """A job gave a reading."""
        self.job_s = max(self.job_s or 0.0, device_s)
        self.n_jobs += 1
        self.jobs_s += device_s

    @property
    def time_over_bound(self) -> float | None:
        """Incumbent's time over the fastest load-only variant's, from one interleaved job."""
        if self.bound_incumbent_s is None or not self.bounds_s:
            return None
        return self.bound_incumbent_s / min(self.bounds_s.values())

    @property
    def own_aa(self) -> tuple[Pair, ...]:
        """The last A/A pairs of `aa_of`."""
        return tuple(self.aa)[-self.n_own_aa :] if self.n_own_aa else ()

    def add_aa(self, incumbent: CandidateId, pairs: tuple[Pair, ...], seq: int) -> None:
        """An incumbent was compared with itself."""
        if self.aa_of != incumbent:
            self.aa_of, self.n_own_aa = incumbent, 0
        self.aa.extend(pairs)
        self.aa_seqs.append(seq)
        self.n_aa += len(pairs)
        self.n_own_aa += len(pairs)
        self.aa_coins += len(pairs)
        self.since_sentinel = self.noise_failures = 0

    def outdate(self) -> None:
        """Take in that the toolchain has changed: nothing that was measured can be compared."""
        self.aa.clear()
        self.aa_seqs.clear()
        self.n_aa = self.n_own_aa = self.since_sentinel = self.noise_failures = 0
        self.aa_of = self.bound_of = self.bound_incumbent_s = self.bound_seq = None
        self.bounds_s = {}
        self.bound_failures = self.final_failures = 0
        self.controls = {name: passed for name, passed in self.controls.items() if not passed}
        self.drop_final()

    def drop_final(self) -> None:
        """The version of the final pairs is the best one no more; their coins stay used."""
        self.final.clear()
        self.final_seqs.clear()


@dataclass(slots=True)
class Probed:
    """What the device said of a microbenchmark."""

    seq: int = -1
    """Record of its times; -1 as long as there is none."""
    times_s: dict[str, float] = field(default_factory=dict)
    """Median per program."""
    failures: int = 0
    """Jobs in a row that failed."""


@dataclass(slots=True)
class DeviceLedger:
    """All device work of a run."""

    kernels: dict[str, KernelLedger] = field(default_factory=dict)
    jobs: int = 0
    """Jobs that have a reply."""
    running: MeasurementRequested | None = None
    running_seq: int = -1
    candidate_pairs: int = 0
    probes: dict[str, "Probed"] = field(default_factory=dict)
    """Microbenchmarks that were tried under the toolchain of now, by name."""
    probe_s: float = 0.0
    """Device time of all probe jobs."""

    def of(self, kernel: str) -> KernelLedger:
        """The ledger of one kernel; reading makes none, or decisions would change the state."""
        return self.kernels[kernel]

    def start(self, kernels: tuple[str, ...]) -> None:
        """A run begins with these kernels."""
        self.kernels = {kernel: KernelLedger() for kernel in kernels}

    def outdate(self) -> None:
        """Take in that the toolchain has changed."""
        for ledger in self.kernels.values():
            ledger.outdate()
        self.probes.clear()

    def request(self, event: MeasurementRequested, seq: int) -> None:
        """A job is sent to the device."""
        self.running, self.running_seq = event, seq

    def pairs(self, event: PairsMeasured, seq: int) -> MeasurementRequested:
        """A job gave pairs; return it."""
        pairs, device_s = event.pairs, event.device_s
        job, ledger = self._done(device_s)
        ledger.add_job(device_s)
        match job.purpose:
            case "test" | "canary":
                ledger.since_sentinel += len(pairs)
                self.candidate_pairs += len(pairs)
            case "noise" | "sentinel":
                ledger.add_aa(job.incumbent, pairs, seq)
            case "final":
                ledger.final.extend(pairs)
                ledger.final_coins += len(pairs)
                ledger.final_seqs.append(seq)
            case "bound" | "probe":
                pass
        return job

    def programs(self, event: ProgramsMeasured, seq: int) -> MeasurementRequested:
        """A job gave the times of the target's own programs; return it."""
        job, ledger = self._done(event.device_s)
        times_s = {name: spread.median for name, spread in event.times_s.items()}
        if job.purpose == "probe":
            ledger.probe_job_s = max(ledger.probe_job_s or 0.0, event.device_s)
            self.probes[job.microbenchmark] = Probed(seq, times_s)
            return job
        ledger.add_job(event.device_s)
        ledger.bound_of, ledger.bound_seq, ledger.bound_failures = job.incumbent, seq, 0
        ledger.bounds_s = times_s
        ledger.bound_incumbent_s = event.incumbent_s
        return job

    def fail(self, device_s: float) -> MeasurementRequested:
        """A job gave nothing; return it."""
        job, ledger = self._done(device_s)
        match job.purpose:
            case "noise" | "sentinel":
                ledger.noise_failures += 1
                ledger.aa_coins += len(job.coins)
            case "final":
                ledger.final_failures += 1
                ledger.final_coins += len(job.coins)
            case "bound":
                ledger.bound_failures += 1
            case "probe":
                self.probes.setdefault(job.microbenchmark, Probed()).failures += 1
            case "test" | "canary":
                pass
        return job

    def control(self, event: HarnessChecked) -> None:
        """A control has spoken about the harness."""
        self.of(event.kernel).controls[event.control] = event.passed

    def _done(self, device_s: float) -> tuple[MeasurementRequested, KernelLedger]:
        job = self.running
        if job is None:
            raise LookupError("a device reply without a running job")
        self.running = None
        self.jobs += 1
        ledger = self.of(job.kernel)
        if job.purpose == "probe":  # what all kernels profit from is no kernel's share
            self.probe_s += device_s
        else:
            ledger.device_s += device_s
        return job, ledger
