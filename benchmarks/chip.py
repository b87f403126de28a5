"""Tests of equal candidates on the simulated device with the noise of the real chip.

What the models of `benchmarks.noise` lack is here: in every job each arm is off by an amount of its
own, so that the pairs of one job are no independent evidence.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise import Floats, Rng, Shape
from decisions.capital import N_AA, scale
from events.vocabulary import Pair
from sim.noise import REAL, Job, NoisyDevice, NoReadings

Bools = NDArray[np.bool_]
KERNELS: Final = tuple(REAL.kernels)
LAUNCHES = 40
"""Of a run: as many as there may be, since a launch takes a tenth of a millisecond."""
JOB_S = 11.0
"""From one job to the next."""


def null_effects(kernel: str, per_job: int, rng: Rng, shape: Shape) -> tuple[Floats, float]:
    """Effects of equal candidates, slot effect taken off, and the pair scale.

    Args:
        kernel: whose noise.
        per_job: pairs of one job.
        rng: of everything.
        shape: tests and pairs.
    """
    device = NoisyDevice(REAL, rng)
    _, aa = _measure(device, kernel, per_job, rng, (1, N_AA))
    measured = scale(
        [
            Pair(candidate_first=True, incumbent_s=1.0, candidate_s=ratio, probe_s=0.0)
            for ratio in np.exp(aa[0] / 100).tolist()
        ]
    )
    coins, differences = _measure(device, kernel, per_job, rng, shape)
    effects = differences - measured.slot
    return np.where(coins, effects, -effects), measured.pair


def _measure(
    device: NoisyDevice, kernel: str, per_job: int, rng: Rng, shape: Shape
) -> tuple[Bools, Floats]:
    """Run all tests side by side, job after job.

    Returns:
        Whether the candidate ran first, and by how much the first slot was slower, log-percent.
    """
    coins = rng.random(shape) < 0.5
    jobs = [
        _job(device, kernel, coins[:, first : first + per_job], JOB_S * first / per_job, rng)
        for first in range(0, shape[1], per_job)
    ]
    return coins, np.concatenate(jobs, axis=1)


def _job(device: NoisyDevice, kernel: str, coins: Bools, at_s: float, rng: Rng) -> Floats:
    """Run one job of every test in one call, each test with two arms of its own."""
    n_tests = len(coins)
    firsts = np.concatenate([np.zeros((n_tests, 1), dtype=bool), coins], axis=1)
    orders = np.where(firsts[..., None], [1, 0], [0, 1])
    schedule = (orders + 2 * np.arange(n_tests)[:, None, None]).ravel().tolist()
    job = Job(kernel, [1e5] * 2 * n_tests, schedule, LAUNCHES, [at_s] * len(schedule), 0.0)
    while isinstance(cycles := device.run(job, rng), NoReadings):
        pass
    slots = np.median(cycles, axis=1).reshape(orders.shape)[:, 1:]
    differences: Floats = 100 * np.log(slots[..., 0] / slots[..., 1])
    return differences
