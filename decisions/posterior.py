"""What is believed of a candidate's true effect; it steers giving up and never accepts anything."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from decisions.capital import CLIP, FLOOR, reaches

WIDEST = 1000.0
"""No effect is believed beyond this, log-percent: a factor of 22,000."""
FREEDOM = 4.0
"""Degrees of freedom of the likelihood: one device pair in thirty is an outlier."""
FASTER, LEVEL = 0.1, 0.2
"""Prior parts: gains; within `BAND` of no difference. The rest is slower."""
BAND = 0.1
GAIN = (0.55, 1.8)
LOSS = (1.0, 1.3)
"""Median (log-percent) and shape of the log-logistic sizes of gains and losses.

Few gains are tiny, most are a fraction of a per cent, and no size is impossible.
"""
PRIOR_PAIRS = 8
FEWEST = 3
"""Pairs below which their own spread says nothing."""
N_HALVINGS = 30
"""Of the bracket of an interval's end: to a billionth of the data's range."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Belief over the true effect, in log-percent; negative is faster."""

    grid: Floats
    """(n,) float64, rising."""
    weight: Floats
    """(n,) float64 probability of each grid point; sums to 1."""
    mean: float
    sd: float
    p_faster: float
    """Probability of an effect below 0."""


def posterior(effects: Sequence[float], scale: float) -> Posterior:
    """Combine the prior with a Student-t likelihood of each pair.

    Args:
        effects: log-percent; may be empty, which gives the prior.
        scale: pair scale, log-percent, above 0.
    """
    grid = _grid(effects, scale)
    density = np.log(_prior(grid) * np.gradient(grid))
    for effect in effects:
        z = (effect - grid) / (0.9 * scale)
        density -= (FREEDOM + 1) / 2 * np.log1p(z * z / FREEDOM)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    mean = float(weight @ grid)
    return Posterior(
        grid=grid,
        weight=weight,
        mean=mean,
        sd=float(np.sqrt(weight @ (grid - mean) ** 2)),
        p_faster=float(weight[grid < 0].sum()),
    )


def spread(effects: Sequence[float], scale: float) -> float:
    """Noise of a candidate's own pairs, which may be measured in another state of the machine.

    Args:
        effects: log-percent.
        scale: of the A/A pairs, log-percent, above 0; it counts like `PRIOR_PAIRS` pairs.

    Returns:
        Their scale, log-percent: a geometric mean of ``scale`` and 1.4826 x MAD, by weight.
    """
    if len(effects) < FEWEST:
        return scale
    middle = median(effects)
    own = max(1.4826 * median(abs(effect - middle) for effect in effects), FLOOR)
    weight = len(effects) / (len(effects) + PRIOR_PAIRS)
    return float(scale ** (1 - weight) * own**weight)


def interval(effects: Sequence[float], scale: float, level: float = 0.95) -> tuple[float, float]:
    """Confidence sequence at the stop: the effects that the same bets cannot rule out.

    Args:
        effects: log-percent, in the order measured.
        scale: pair scale, log-percent, above 0.
        level: probability of covering the true effect, whenever the measuring was stopped.

    Returns:
        Low and high in log-percent, within +-`WIDEST`, where a side without a bound ends.
    """
    if not effects:
        return -WIDEST, WIDEST
    limit = 2 / (1 - level)

    def too_slow(shift: float) -> bool:
        return reaches([effect - shift for effect in effects], scale, limit)

    def too_fast(shift: float) -> bool:
        return reaches([shift - effect for effect in effects], scale, limit)

    bottom, top = min(effects) - CLIP * scale, max(effects) + CLIP * scale
    high = _edge(too_slow, bottom, top) if too_slow(top) else WIDEST
    low = _edge(too_fast, top, bottom) if too_fast(bottom) else -WIDEST
    return min(low, high), max(low, high)


def _edge(ruled_out: Callable[[float], bool], inside: float, outside: float) -> float:
    """Halve the way between a shift that stands and one that is ruled out."""
    for _ in range(N_HALVINGS):
        middle = (inside + outside) / 2
        if ruled_out(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _grid(effects: Sequence[float], scale: float) -> Floats:
    """Fine around no difference, coarse far out, and fine again around the data's median."""
    fixed = 0.05 * np.sinh(np.linspace(-10.6, 10.6, 401))
    if not effects:
        return fixed
    local = median(effects) + 4 * scale * np.linspace(-1, 1, 121)
    return np.union1d(fixed, local)


def _prior(grid: Floats) -> Floats:
    """Density of the effect before any pair, per log-percent."""
    size = np.abs(grid)
    gain = FASTER * _log_logistic(size, *GAIN)
    loss = (1 - FASTER - LEVEL) * _log_logistic(size, *LOSS)
    return np.where(grid < 0, gain, loss) + np.where(size < BAND, LEVEL / (2 * BAND), 0.0)


def _log_logistic(size: Floats, middle: float, shape: float) -> Floats:
    power = (size / middle) ** shape
    return shape / middle * (size / middle) ** (shape - 1) / (1 + power) ** 2
