"""Noise of a real accelerator, put on times that are known.

The parts and their default sizes are those seen on the chip that this one is modelled after:
launches scatter with heavy tails, an arm is off by its own amount in every job, the whole machine
drifts over hours, the first launch of a process and one after an idle second pay extra, a few
launches are far off, and some jobs never come back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class KernelNoise:
    """What depends on the kernel. Deviations are of the logarithm of a time."""

    launch_sd: float = 0.02
    """From launch to launch, without `fast_rate`."""
    arm_sd: float = 0.01
    """From job to job, of each arm by itself."""
    drift_sd: float = 0.01
    """From job to job, of all arms together."""
    first_cycles: tuple[float, float] = (0, 0)
    """Least and most that the first launch of a process takes on top."""
    fast_rate: float = 0
    """Share of the launches that are faster by `fast_depth`."""
    fast_depth: tuple[float, float] = (0, 0)
    """Least and most; logarithms."""


@dataclass(frozen=True)
class NoiseProfile:
    """How noisy a device is."""

    kernels: Mapping[str, KernelNoise] = field(default_factory=dict)
    other: KernelNoise = KernelNoise()
    """Of kernels not in `kernels`."""
    tail_freedom: float = 5
    """Degrees of freedom of the launches' Student distribution; above 2."""
    drift_s: float = 5_400
    """Time constant of the machine's drift."""
    common_share: float = 0.8
    """Of the variance of the drift: the machine's, slow and equal for all kernels. The rest is
    drawn anew in every job."""
    idle_s: float = 1
    """A launch after so long an idle time pays `idle_cycles`."""
    idle_cycles: tuple[float, float] = (26_000, 49_000)
    stall_rate: float = 0.02
    """Of such launches: those that pay between the most of `idle_cycles` and `stall_cycles`."""
    stall_cycles: float = 2_000_000
    outlier_rate: float = 0.007
    """Of all launches."""
    outlier_factor: tuple[float, float] = (1.1, 2.8)
    hang_rate: float = 0.002
    """Of jobs."""
    loss_rate: float = 0.003
    """Of jobs."""


REAL: Final = NoiseProfile(
    {
        "sliding_project_qkv": KernelNoise(0.030, 0.024, 0.020, (3_000, 5_000)),
        "sliding_attention_output": KernelNoise(
            0.028, 0.015, 0.017, fast_rate=0.13, fast_depth=(0.07, 0.13)
        ),
        "decoder_feedforward": KernelNoise(0.007, 0.0025, 0.004, (-6_000, 0)),
    }
)
"""As on the real chip."""

QUIET: Final = NoiseProfile(
    other=KernelNoise(0.001, 0, 0),
    idle_cycles=(0, 0),
    stall_rate=0,
    outlier_rate=0,
    hang_rate=0,
    loss_rate=0,
)
"""A tenth of a per cent between launches and nothing else."""


@dataclass(frozen=True)
class NoReadings:
    """A job that gave nothing."""

    reason: Literal["hung", "lost"]
    """It never ended; it vanished."""


@dataclass(frozen=True)
class Job:
    """What is to be launched, in one process."""

    kernel: str
    arm_cycles: Sequence[float]
    """True times, by arm."""
    schedule: Sequence[int]
    """Arm of each run."""
    n_launches: int
    """Of each run."""
    starts_s: Sequence[float]
    """When each run starts, on any clock that the device's jobs share; not negative."""
    idle_s: float
    """How long the device has been idle before the first run."""


class NoisyDevice:
    """A device whose drift follows from a seed and a clock alone, in whatever order it is asked."""

    def __init__(self, profile: NoiseProfile, rng: Rng) -> None:
        """Start the drift.

        Args:
            profile: how noisy it is.
            rng: of the drift; used up to the latest time asked for.
        """
        self._profile = profile
        self._drift = _Drift(profile.drift_s, rng)

    def condition(self, at_s: float) -> float:
        """Return the machine's drift at a time, in standard deviations; above 0 it is slow."""
        return self._drift.at(at_s)

    def run(self, job: Job, rng: Rng) -> Floats | NoReadings:
        """Launch everything in ``job``.

        Args:
            job: what.
            rng: this job's own.

        Returns:
            Device cycles, (runs, launches of a run).
        """
        fate = rng.random()
        if fate < self._profile.hang_rate:
            return NoReadings("hung")
        if fate < self._profile.hang_rate + self._profile.loss_rate:
            return NoReadings("lost")
        kernel = self._profile.kernels.get(job.kernel, self._profile.other)
        arms = np.asarray(job.schedule)
        slow = kernel.arm_sd * rng.standard_normal(len(job.arm_cycles))[arms]
        slow += kernel.drift_sd * self._job_drift(job, rng)
        shape = len(arms), job.n_launches
        logs = slow[:, None] + self._scatter(kernel, shape, rng)
        cycles: Floats = np.asarray(job.arm_cycles, dtype=np.float64)[arms][:, None] * np.exp(logs)
        cycles[:1, :1] += self._cold_cycles(kernel, job.idle_s, rng)
        cycles *= self._outliers(shape, rng)
        return cycles

    def _job_drift(self, job: Job, rng: Rng) -> Floats:
        """Return the drift of each run, in standard deviations."""
        share = self._profile.common_share
        common = np.array([self._drift.at(s) for s in job.starts_s])
        return sqrt(share) * common + sqrt(1 - share) * rng.standard_normal()

    def _scatter(self, kernel: KernelNoise, shape: tuple[int, int], rng: Rng) -> Floats:
        freedom = self._profile.tail_freedom
        unit_sd = sqrt((freedom - 2) / freedom)
        scatter = kernel.launch_sd * unit_sd * rng.standard_t(freedom, shape)
        fast = rng.random(shape) < kernel.fast_rate
        return scatter - fast * rng.uniform(*kernel.fast_depth, shape)

    def _cold_cycles(self, kernel: KernelNoise, idle_s: float, rng: Rng) -> float:
        first = rng.uniform(*kernel.first_cycles)
        profile = self._profile
        if idle_s <= profile.idle_s:
            return first
        if rng.random() < profile.stall_rate:
            most = profile.idle_cycles[1]
            return first + exp(rng.uniform(log(most), log(profile.stall_cycles)))
        return first + rng.uniform(*profile.idle_cycles)

    def _outliers(self, shape: tuple[int, int], rng: Rng) -> Floats:
        hit = rng.random(shape) < self._profile.outlier_rate
        return np.where(hit, rng.uniform(*self._profile.outlier_factor, shape), 1.0)


class _Drift:
    """A stationary AR(1) path of unit variance, made as far as it is asked for."""

    _STEPS = 32
    """Per time constant; linear between."""

    def __init__(self, constant_s: float, rng: Rng) -> None:
        self._step_s = constant_s / self._STEPS
        self._memory = exp(-1 / self._STEPS)
        self._rng = rng
        self._path = [float(rng.standard_normal())]

    def at(self, time_s: float) -> float:
        k, part = divmod(time_s / self._step_s, 1)
        while len(self._path) < k + 2:
            shock = sqrt(1 - self._memory**2) * float(self._rng.standard_normal())
            self._path.append(self._memory * self._path[-1] + shock)
        low, high = self._path[int(k) : int(k) + 2]
        return low + part * (high - low)
