"""Devices of a benchmark: what noise each has, and the pairs that it measures.

Times are logarithms in per cent. A part of a noise is (repetitions, pairs) -> (repetitions, pairs,
2): what it adds to the time in each slot of every pair.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from decisions.capital import Scale, scale
from events.vocabulary import Pair

Floats = NDArray[np.floating]
Rng = np.random.Generator
Shape = tuple[int, int]
RUN_SD = 0.5


def gaussian(rng: Rng, shape: Shape) -> Floats:
    """Independent runs."""
    return rng.normal(0, RUN_SD, (*shape, 2))


def heavy(rng: Rng, shape: Shape) -> Floats:
    """Student-t with three degrees of freedom."""
    return RUN_SD / math.sqrt(3) * rng.standard_t(3, (*shape, 2))


def spikes(rng: Rng, shape: Shape) -> Floats:
    """One run in a hundred is 20 % slower."""
    return 20.0 * (rng.random((*shape, 2)) < 0.01)


def drift(rng: Rng, shape: Shape) -> Floats:
    """AR(1) of standard deviation 2 % and an hour's memory, ten seconds a run."""
    memory = math.exp(-1 / 360)
    shocks = rng.normal(0, 2 * math.sqrt(1 - memory**2), (shape[0], 2 * shape[1]))
    shocks[:, 0] = rng.normal(0, 2, shape[0])
    slow: Floats = lfilter([1.0], [1.0, -memory], shocks, axis=1)
    return slow.reshape(*shape, 2)


def walk(rng: Rng, shape: Shape) -> Floats:
    """Random walk of 0.02 % a run."""
    steps = rng.normal(0, 0.02, (shape[0], 2 * shape[1]))
    return np.cumsum(steps, axis=1).reshape(*shape, 2)


def states(rng: Rng, shape: Shape) -> Floats:
    """A neighbour flips the clock between two states, 8 % apart, once in 50 runs."""
    flips = rng.random((shape[0], 2 * shape[1])) < 0.02
    return 8.0 * (np.cumsum(flips, axis=1) % 2).reshape(*shape, 2)


def slot(rng: Rng, shape: Shape) -> Floats:
    """The first slot is 0.3 % slower."""
    return np.broadcast_to(np.array([0.3, 0.0]), (*shape, 2))


def cold(rng: Rng, shape: Shape) -> Floats:
    """The first run of every three-pair job is 1 % slower."""
    late = np.zeros((*shape, 2))
    late[:, ::3, 0] = 1.0
    return late


@dataclass(frozen=True)
class Noise:
    """A device: parts that add up, read on a clock with steps of ``tick`` log-percent."""

    parts: tuple[Callable[[Rng, Shape], Floats], ...]
    tick: float = 0.0

    def slots(self, rng: Rng, shape: Shape) -> Floats:
        """Unread times of both slots of every pair, (repetitions, pairs, 2), log-percent."""
        total: Floats = np.sum([part(rng, shape) for part in self.parts], axis=0)
        return total

    def read(self, times: Floats) -> Floats:
        """What the clock shows."""
        return self.tick * np.round(times / self.tick) if self.tick else times


MODELS = {
    "Gaussian": Noise((gaussian,)),
    "t3": Noise((heavy,)),
    "spikes": Noise((gaussian, spikes)),
    "hour drift": Noise((gaussian, drift)),
    "random walk": Noise((gaussian, walk)),
    "two clock states": Noise((gaussian, states)),
    "position": Noise((gaussian, slot)),
    "coarse grid": Noise((gaussian,), tick=1.0),
    "cold starts": Noise((gaussian, cold)),
    "all together": Noise((heavy, spikes, drift, walk, states, slot, cold), tick=0.1),
}


def pairs_of(noise: Noise, slots: Floats, effect: float, rng: Rng) -> list[Pair]:
    """Run a candidate of a true ``effect`` in slots of (pairs, 2), in the order of fair coins."""
    coins = rng.random(len(slots)) < 0.5
    order = np.where(coins[:, None], [1, 0], [0, 1])
    arms = np.take_along_axis(slots, order, axis=1) + np.array([0.0, effect])
    return [
        Pair(candidate_first=first, incumbent_s=incumbent, candidate_s=candidate, probe_s=0.0)
        for first, (incumbent, candidate) in zip(
            coins.tolist(), np.exp(noise.read(arms) / 100).tolist(), strict=True
        )
    ]


def aa_scale(noise: Noise, rng: Rng) -> Scale:
    """The scale that 200 A/A pairs of this device give."""
    return scale(pairs_of(noise, noise.slots(rng, (1, 200))[0], 0.0, rng))
