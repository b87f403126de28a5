"""What the rest of the system may ask of an accelerator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from targets.profiler.schedule import BytesOf


class TargetError(Exception):
    """The target cannot be used here (no compiler, no device); the text says what to do."""


@dataclass(frozen=True)
class Card:
    """What a kernel is, for agents and reports."""

    task: str
    """Mathematics, formats, buffers, the function to define: all that an author needs."""
    weight_bytes: int
    """Bytes of weights and scales that every launch must move."""


@dataclass(frozen=True)
class Sources:
    """The target's own sources for one kernel."""

    baseline: str
    canary_wrong: str
    """Builds, runs, and is wrong by more than the tolerance."""
    canary_slow: str
    """Correct, and slower than the baseline by a known large factor."""
    bounds: Mapping[str, str]
    """Load-only variants by name: they stream the weight bytes and compute nothing."""


@dataclass(frozen=True)
class Document:
    """A text about the target or its language."""

    title: str
    """Of which no two documents have the same."""
    text: str


@dataclass(frozen=True)
class Point:
    """One program of a microbenchmark."""

    source: str
    counts: Mapping[str, float]
    """How often a launch does each thing, or how much of it, by the name of the thing. The time is
    taken for the sum of these counts, each times what one of its things costs."""


@dataclass(frozen=True)
class Microbenchmark:
    """A family of programs whose times together say what some things cost."""

    name: str
    """A word."""
    points: Mapping[str, Point]
    """More than things that they count, so that the fit has a residual."""


@dataclass(frozen=True)
class Built:
    """A source that built."""

    artifact: bytes
    warnings: str


@dataclass(frozen=True)
class BuildFailed:
    """A source that the toolchain, or the target's own rules, refuse."""

    diagnostics: str
    """As printed, with paths of this machine removed."""
    signature: str
    """Stable class of the first error: numbers, names and positions removed."""
    snippet: str
    """Smallest offending source text known (a token or a line); "" if there is none."""
    certain: bool = False
    """Whether the snippet alone makes any source illegal, whatever stands around it."""


@dataclass(frozen=True)
class FixtureResult:
    """One fixture of a correctness check."""

    fixture: str
    margin: float | None
    """max |error| / (atol + rtol |reference|); passes at <= 1. None: nothing to compare."""
    detail: str
    """Why it failed, "" if it passed."""

    @property
    def passed(self) -> bool:
        """Within the tolerance, everything written, nothing else touched."""
        return self.margin is not None and self.margin <= 1.0 and not self.detail


@dataclass(frozen=True)
class Run:
    """One timed run of one arm."""

    arm: int
    launches_s: tuple[float, ...]
    probe_s: float
    """Condition probe taken before the group of runs that this one belongs to."""


@dataclass(frozen=True)
class Measured:
    """The runs of one device job, in order, and what the arms computed meanwhile."""

    runs: tuple[Run, ...]
    margins: tuple[float | None, ...]
    """Per arm, the worst margin of outputs taken during the job; None for an unchecked arm."""


@dataclass(frozen=True)
class MeasureFailed:
    """A device job that gave no runs."""

    arm: int | None
    """The arm that is to blame; None: the device or the harness."""
    reason: str


@dataclass(frozen=True)
class Cost:
    """What the toolchain's own cost model says of an artifact."""

    cycles: int
    """Makespan of the static schedule, of the target's nominal clock."""
    schedule: bytes
    """The schedule as JSON that `targets.profiler.schedule.read` can read."""
    bytes_of: BytesOf | None = None
    """Where the schedule does not say what its transfers move."""
    sizes: Mapping[str, int] | None = None
    """Bytes by name of tensor, where the schedule does not say them."""


@dataclass(frozen=True)
class Ask:
    """What the catalogue is asked, the same as what a model's prompt says."""

    kernel: str
    task: str
    incumbent_source: str
    plan: str
    """The architect's plan, when the task is to implement it."""
    tried: frozenset[str]
    """Moves already proposed: designs of this kernel, or steps on this very incumbent."""
    bottleneck: str
    seed: int


REVIEW = "<review>go</review><reason>the catalogue filters nothing</reason>"
"""What every catalogue replies to a review."""


class Catalogue(Protocol):
    """A target's own moves; answers like a model would, in the same reply format."""

    def reply(self, ask: Ask) -> str:
        """Return the reply text for ``ask``; deterministic given ``ask``."""
        ...


class Target(Protocol):
    """One kind of accelerator. Every method may be called in any process."""

    name: str
    catalogue: Catalogue
    shares_host: bool
    """Whether work on the device's machine disturbs its readings: then nothing is screened there
    while it measures."""

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels it knows."""
        ...

    def presets(self) -> tuple[str, ...]:
        """Names of the sizes it knows."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """Everything whose change makes artifacts or times incomparable.

        Raises:
            TargetError: it cannot be used here.
        """
        ...

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        ...

    def sources(self, kernel: str) -> Sources:
        """Return the target's own sources for a kernel."""
        ...

    def normalize(self, source: str) -> str:
        """Remove what cannot matter (comments, spacing): equal results are duplicates."""
        ...

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Build hostile source, in the sandbox."""
        ...

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Run a hostile artifact, sandboxed, on one fixture per seed; stop at the first failure."""
        ...

    def measure(
        self,
        kernel: str,
        arms: Sequence[bytes],
        schedule: Sequence[int],
        *,
        group: int,
        launches: int,
        checked: Sequence[bool],
        seed: int,
        limit_s: float,
    ) -> Measured | MeasureFailed:
        """Time arms in one sandboxed process, in the order of ``schedule``.

        Args:
            kernel: whose buffers to bind.
            arms: artifacts, loaded side by side.
            schedule: arm of each run.
            group: runs between two condition probes.
            launches: launches per run, on rotating buffers.
            checked: per arm, whether its outputs are compared with the reference.
            seed: of inputs and buffers.
            limit_s: the process is killed after so many seconds.
        """
        ...


@runtime_checkable
class CostModel(Protocol):
    """A target whose toolchain can say what an artifact would cost, without running it."""

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """Return the static cost; deterministic given the artifact and the toolchain.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        ...


@runtime_checkable
class WholeCompiler(Protocol):
    """A target whose builds stop before the program that the device runs: the rest takes long."""

    def compile_fully(self, kernel: str, artifact: bytes) -> Built | BuildFailed:
        """Return the device's program of an artifact.

        Raises:
            ValueError: this is no artifact of this kernel.
            TargetError: a tool of the last stages is missing; the text says how to get it.
        """
        ...


class Clock(Protocol):
    """Time in a simulated world; `sim.clock.VirtualClock` is one."""

    def __call__(self) -> float:
        """Seconds since the begin of the run, as the actor at work sees them."""
        ...

    def spend(self, seconds: float) -> None:
        """Take ``seconds`` for the work in hand."""
        ...


@runtime_checkable
class VirtualTarget(Target, Protocol):
    """A target whose work takes no real time; its runs are driven on a virtual clock."""

    clock: Clock
    """Told what a build, a check, a job or a reply of the catalogue takes. Whoever drives the
    clock sets it."""

    def updated(self, n_updates: int) -> "VirtualTarget":
        """Return this target, on the same clock, after updates of its toolchain."""
        ...


@runtime_checkable
class TruthKnown(Protocol):
    """A target that can say what its readings scatter around; a search never asks it."""

    def truth(self, kernel: str, artifact: bytes) -> float:
        """Return the seconds of a launch without noise, infinite if it hangs.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        ...

    def true_bound(self, kernel: str) -> float:
        """Return the seconds of the fastest load-only variant without noise."""
        ...


@runtime_checkable
class Documented(Protocol):
    """A target that has documents from which its author, or an agent, can learn."""

    def documents(self) -> tuple[Document, ...]:
        """Return them, in the order to read them."""
        ...


@runtime_checkable
class Probed(Protocol):
    """A target that can be measured piece by piece."""

    def microbenchmarks(self, kernel: str) -> tuple[Microbenchmark, ...]:
        """Return its families of programs, cheapest first.

        They bind the buffers of ``kernel``, build like its sources, and need not compute it.
        """
        ...
