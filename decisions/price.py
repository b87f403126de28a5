"""The price stop: when finishing a candidate is worth less than the device time it takes.

A price can lose gains and never validity: stopping, pausing and going on are all optional stopping.
A measurement is one run of one arm, so a pair costs two.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from decisions.posterior import Floats, Posterior
from decisions.rounding import rounded

LOWEST, HIGHEST = 2e-4, 0.2
"""Bounds of the price, log-percent per measurement."""
GAIN = 0.02
"""How fast the price follows the spending."""
MAX_RATIO = 8.0
"""One candidate's cost counts as at most so many allowances."""
RUNS_PER_PAIR = 2
LEARNING = 0.5
"""Natural log of capital that finding the right bettor costs, about."""
DOUBT = 0.3
"""Natural log of odds at which a candidate that is too small a gain is given up, about."""
GOALS = np.geomspace(0.05, 50.0, 24)
"""Smallest gains worth finishing that are tried as plans, log-percent."""


@dataclass(frozen=True)
class Price:
    """What one measurement must be expected to earn, in log-percent."""

    value: float


def allowance(measurements_left: float, candidates_left: float) -> float:
    """Return the measurements that each candidate still expected may cost."""
    return measurements_left / max(candidates_left, 1.0)


def next_price(price: Price, cost: float, allowance: float) -> Price:
    """Move the price after a candidate's verdict.

    Args:
        price: before it.
        cost: measurements that the candidate took.
        allowance: measurements left over candidates still expected; nothing left counts as
            a cost of `MAX_RATIO` allowances.
    """
    ratio = min(cost / allowance, MAX_RATIO) if allowance > 0 else MAX_RATIO
    value = price.value * math.exp(GAIN * (ratio - 1))
    return Price(min(max(rounded(value), LOWEST), HIGHEST))


def reopened(indices: Mapping[int, float]) -> tuple[int, Price] | None:
    """Choose what goes on when nothing new is waiting.

    Args:
        indices: index of each candidate parked by its price; one parked at its most pairs is
            not among them.

    Returns:
        The parked candidate with the highest index and the price that it goes on at, the
        runner-up's index; None if no index reaches `LOWEST`.
    """
    ranked = sorted(indices, key=lambda candidate: (-indices[candidate], candidate))
    if not ranked or indices[ranked[0]] < LOWEST:
        return None
    runner_up = indices[ranked[1]] if len(ranked) > 1 else LOWEST
    return ranked[0], Price(min(max(runner_up, LOWEST), HIGHEST))


def index(belief: Posterior, capital: float, scale: float, alpha: float) -> float:
    """Expected gain of finishing a candidate over its expected remaining measurements.

    The plan valued is the best of "finish if the gain is at least g, else give up" over
    `GOALS`: a gain costs the pairs until the capital reaches 1/alpha, anything else those that
    tell it from g, though never more than finishing g would.

    Args:
        belief: over its effect.
        capital: of its test now; 0 counts as 1e-300.
        scale: pair scale, log-percent.
        alpha: false-accept probability.

    Returns:
        Log-percent per measurement, at least 0.
    """
    need = max(-math.log(alpha) - math.log(max(capital, 1e-300)), 0.0) + LEARNING
    goal, effect = GOALS[:, None], belief.grid
    finish = np.maximum(need / _growth(effect / scale), 1.0)
    longest = np.maximum(need / _growth(goal / scale), 1.0)
    drop = np.clip(DOUBT / _growth((effect + goal) / scale), 1.0, longest)
    enough = effect <= -goal
    gains = (belief.weight * np.where(enough, -effect, 0.0)).sum(axis=1)
    pairs = (belief.weight * np.where(enough, finish, drop)).sum(axis=1)
    return float((gains / (RUNS_PER_PAIR * pairs)).max())


def _growth(size: Floats) -> Floats:
    """Natural log of capital that one pair adds on average, per effect in pair scales.

    The information of a fair coin seen through Gaussian noise: size**2 / 2 when small, ln 2
    when large.
    """
    bit = math.log(2)
    return bit * -np.expm1(-np.maximum(size * size, 1e-12) / (2 * bit))
