"""Device jobs of a simulated device: times that are known, under the noise of a real one."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isinf
from typing import Final, Literal

import numpy as np

from sim.noise import QUIET, REAL, Floats, Job, NoisyDevice, NoReadings, Rng
from targets.protocol import Clock, FixtureResult, Measured, MeasureFailed, Run

Noise = Literal["real", "quiet"]
PROFILES: Final = {"real": REAL, "quiet": QUIET}
START_S: Final = 11.0
"""From the submission of a job to its first launch, upload included: a rerun took 11 s."""
LAUNCH_S: Final = 9.0 / 39
"""One launch with what the host does around it: 39 took 9 s."""
PROBE_S: Final = 1e-4
"""Of the condition probe on an average day."""
PROBE_SD: Final = 0.01
"""Of its logarithm."""


@dataclass(frozen=True)
class Order:
    """A device job as the target protocol words it, its arms with their true times."""

    kernel: str
    arms: Sequence[bytes]
    launch_s: Sequence[float]
    """True seconds per launch, by arm."""
    clock_hz: float
    """Of the device: what the noise adds is in its cycles."""
    schedule: Sequence[int]
    group: int
    launches: int
    checked: Sequence[bool]
    seed: int
    limit_s: float
    check: Callable[[str, bytes, Sequence[int]], tuple[FixtureResult, ...]]
    """Of the target; asked for arms that are checked."""

    @property
    def lasts_s(self) -> float:
        """How long the job takes if nothing goes wrong."""
        return job_s(len(self.schedule), self.launches)


def job_s(n_runs: int, launches: int) -> float:
    """How long a job of the real service takes, with so many launches a run."""
    return START_S + n_runs * launches * LAUNCH_S


def measure(order: Order, noise: Noise, clock: Clock) -> Measured | MeasureFailed:
    """Run a job; at the same time equal arguments give equal readings.

    Args:
        order: what to run; its seed is also that of the device's drift, the same for a whole run.
        noise: how noisy the device is.
        clock: says when the job starts and is told how long it takes.

    Raises:
        ValueError: an arm is no artifact of the kernel.
    """
    at_s = clock()
    hung = next((arm for arm in order.schedule if isinf(order.launch_s[arm])), None)
    if hung is not None or order.lasts_s > order.limit_s:
        clock.spend(order.limit_s)
        return MeasureFailed(hung, f"not over after {order.limit_s:.0f} s, so it was killed")
    starts_s = [at_s + START_S + i * order.launches * LAUNCH_S for i in range(len(order.schedule))]
    device = _device(noise, order.seed)
    cycles = device.run(_job(order, starts_s), _rng(order, at_s))
    if isinstance(cycles, NoReadings):
        is_hung = cycles.reason == "hung"
        clock.spend(order.limit_s if is_hung else order.lasts_s)
        return MeasureFailed(None, f"the job {'hung' if is_hung else 'was lost'}: no readings")
    clock.spend(order.lasts_s)
    margins = _margins(order)
    if isinstance(margins, MeasureFailed):
        return margins
    probes_s = [PROBE_S * exp(PROBE_SD * device.condition(s)) for s in starts_s]
    return Measured(_runs(order, cycles, probes_s), margins)


def _runs(order: Order, cycles: Floats, probes_s: Sequence[float]) -> tuple[Run, ...]:
    """Pair the launches of each run with the probe before its group."""
    return tuple(
        Run(arm, tuple((row / order.clock_hz).tolist()), probes_s[i - i % order.group])
        for i, (arm, row) in enumerate(zip(order.schedule, cycles, strict=True))
    )


def _job(order: Order, starts_s: Sequence[float]) -> Job:
    """Word the job for the noise: while a job starts, the device is idle."""
    true_cycles = [s * order.clock_hz for s in order.launch_s]
    return Job(order.kernel, true_cycles, order.schedule, order.launches, starts_s, idle_s=START_S)


def _margins(order: Order) -> tuple[float | None, ...] | MeasureFailed:
    margins: list[float | None] = []
    for arm, artifact in enumerate(order.arms):
        if not order.checked[arm]:
            margins.append(None)
            continue
        (result,) = order.check(order.kernel, artifact, [order.seed])
        if not result.passed:
            return MeasureFailed(arm, result.detail)
        margins.append(result.margin)
    return tuple(margins)


def _rng(order: Order, at_s: float) -> Rng:
    told = (order.kernel, order.arms, tuple(order.schedule), order.launches, order.seed, at_s)
    return np.random.default_rng(list(hashlib.sha256(repr(told).encode()).digest()))


@lru_cache(maxsize=4)
def _device(noise: Noise, seed: int) -> NoisyDevice:
    return NoisyDevice(PROFILES[noise], np.random.default_rng(seed))
