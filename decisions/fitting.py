"""What things cost, from the times of programs that do them: non-negative least squares. Pure."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from decisions.rounding import rounded
from events.vocabulary import Timing

DIGITS = 6
"""Significant digits of a cost: what linear algebra agrees on between machines."""
LEVEL = 0.95
"""Of the interval of each cost."""
RESIDUAL = "residual"
"""Key of what the fit leaves: root of the mean square of relative errors."""


def costs(timings: Sequence[Timing]) -> dict[str, float]:
    """Fit ``seconds = sum over things of count * cost``, relative errors weighing alike.

    Args:
        timings: of the programs; together they count more programs than things.

    Returns:
        Seconds per thing, none negative; ``<thing> low`` and ``<thing> high``, the ends of its 95 %
        interval from what the fit leaves (Student), and `RESIDUAL`.

    Raises:
        ValueError: the timings do not tell the things apart, or leave nothing to judge the fit by.
    """
    from scipy.optimize import nnls  # takes a second, and most commands fit nothing
    from scipy.special import stdtrit

    things = things_of(timings)
    design = _design(timings, things)
    spare = len(timings) - len(things)
    if spare < 1 or np.linalg.matrix_rank(design) < len(things):
        raise ValueError(f"{len(timings)} programs do not tell {len(things)} things apart")
    found, norm = nnls(design, np.ones(len(timings)))
    covariance = np.linalg.inv(design.T @ design) * norm**2 / spare
    half = stdtrit(spare, (1 + LEVEL) / 2) * np.sqrt(np.diag(covariance))
    fitted = {RESIDUAL: rounded(norm / sqrt(len(timings)), DIGITS)}
    for thing, cost, width in zip(things, found.tolist(), half.tolist(), strict=True):
        fitted[thing] = rounded(cost, DIGITS)
        fitted[f"{thing} low"] = rounded(max(cost - width, 0.0), DIGITS)
        fitted[f"{thing} high"] = rounded(cost + width, DIGITS)
    return fitted


def things_of(timings: Sequence[Timing]) -> tuple[str, ...]:
    """What the programs count, in the order in which it first appears."""
    return tuple(dict.fromkeys(thing for timing in timings for thing in timing.counts))


def is_fittable(timings: Sequence[Timing]) -> bool:
    """Whether `costs` has an answer."""
    things = things_of(timings)
    if len(timings) <= len(things):
        return False
    return bool(np.linalg.matrix_rank(_design(timings, things)) == len(things))


def _design(timings: Sequence[Timing], things: Sequence[str]) -> NDArray[np.float64]:
    """Counts over times, (programs, things): a row times the costs is 1 for a perfect fit."""
    return np.array([[t.counts.get(thing, 0.0) / t.time_s for thing in things] for t in timings])
