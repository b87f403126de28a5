"""The sequential randomization test: what betting on fair coins has earned.

If a candidate is not faster, our own coin alone decided the sign of each effect; a fair game
multiplies money by 1/alpha with probability at most alpha, whenever we look or stop. Everything
here is plain Python floats in one order, so that a recorded run gives the same bits again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from decisions.rounding import rounded
from events.vocabulary import Pair

RATES = (0.4, 0.8, 2.0)
"""How steeply each bettor's stake rises with the size of an effect."""
SHARES = (0.5, 0.3, 0.2)
"""What each bettor owns at the start, of one unit."""
CLIP = 1.5
"""Effects count as at most so many pair scales, so no outlier is worth more than a win."""
N_AA = 200
"""A/A pairs that the scale is taken from: the last ones."""
MIN_AA = 4
"""With fewer A/A pairs than this the scale is `DEFAULT`."""
FLOOR = 0.02
"""Smallest pair scale, log-percent: below the resolution of any clock that times a kernel."""


@dataclass(frozen=True)
class Scale:
    """The noise of one pair of a kernel, in log-percent."""

    pair: float
    """s: robust standard deviation of an A/A effect, above 0."""
    slot: float
    """p: by how much the first slot is slower than the second."""


DEFAULT = Scale(pair=2.0, slot=0.0)
"""Before there are A/A pairs; a scale wrong by a factor 4 costs pairs, never validity."""


def scale(aa: Sequence[Pair]) -> Scale:
    """Estimate the noise of a pair from A/A pairs.

    Args:
        aa: pairs of the incumbent with its own copy, oldest first; the copy is the candidate.

    Returns:
        1.4826 x MAD and median of the slot effect over the last `N_AA` pairs. When more than
        half are ties the MAD is 0 and the mean deviation stands in; the result is never below
        `FLOOR`.
    """
    slots = [_raw(pair) if pair.candidate_first else -_raw(pair) for pair in aa[-N_AA:]]
    if len(slots) < MIN_AA:
        return DEFAULT
    slot = median(slots)
    deviations = [abs(value - slot) for value in slots]
    spread = 1.4826 * median(deviations) or 1.2533 * fmean(deviations)
    return Scale(pair=max(rounded(spread), FLOOR), slot=rounded(slot))


def effect_of(pair: Pair, slot: float) -> float:
    """Return 100 ln(t_candidate / t_incumbent) without the slot effect; negative is faster."""
    return _raw(pair) - slot if pair.candidate_first else _raw(pair) + slot


def capital(effects: Sequence[float], scale: float, alpha: float) -> tuple[float, ...]:
    """Bet on "the candidate is faster", pair after pair.

    Args:
        effects: log-percent, in the order measured; negative is faster.
        scale: pair scale s, log-percent, above 0.
        alpha: false-accept probability; the bet never stakes more than reaching 1/alpha needs.

    Returns:
        Capital after each pair, from 1 before the first, within [0, 1/alpha].

    Raises:
        ValueError: ``scale`` or ``alpha`` is out of its range.
    """
    if not (scale > 0 and 0 < alpha < 1):
        raise ValueError(f"need scale > 0 and 0 < alpha < 1, got {scale} and {alpha}")
    limit, held, shares, path = 1 / alpha, 1.0, SHARES, []
    for effect in effects:
        stakes = _stakes(effect, scale)
        held = _bet(held, _mean(shares, stakes), effect, limit)
        shares = _moved(shares, stakes, effect)
        path.append(held)
    return tuple(path)


def reaches(effects: Sequence[float], scale: float, limit: float) -> bool:
    """Tell whether the bettors' wealth, without the cap on the stake, is ever at ``limit``.

    Each factor falls as its effect rises, so the answer is monotone in a shift of all effects:
    this is what the confidence sequence inverts.
    """
    held, shares = 1.0, SHARES
    for effect in effects:
        stakes = _stakes(effect, scale)
        held = held * (1 - _signed(_mean(shares, stakes), effect))
        if held >= limit:
            return True
        shares = _moved(shares, stakes, effect)
    return False


def _raw(pair: Pair) -> float:
    return 100 * math.log(pair.candidate_s / pair.incumbent_s)


def _stakes(effect: float, scale: float) -> tuple[float, float, float]:
    size = min(abs(effect) / scale, CLIP)
    slow, middle, fast = RATES
    return math.tanh(slow * size), math.tanh(middle * size), math.tanh(fast * size)


def _mean(shares: tuple[float, float, float], stakes: tuple[float, float, float]) -> float:
    return shares[0] * stakes[0] + shares[1] * stakes[1] + shares[2] * stakes[2]


def _signed(stake: float, effect: float) -> float:
    """What is lost, as a fraction: positive for slower, negative for faster, 0 at a tie."""
    if effect == 0:
        return 0.0
    return stake if effect > 0 else -stake


def _bet(held: float, stake: float, effect: float, limit: float) -> float:
    """Move the capital by one capped bet; a win of a capped bet lands on ``limit`` exactly."""
    if held * (1 + stake) >= limit:
        needed = limit / held - 1
        return limit if effect < 0 else held * (1 - _signed(needed, effect))
    return held * (1 - _signed(stake, effect))


def _moved(
    shares: tuple[float, float, float], stakes: tuple[float, float, float], effect: float
) -> tuple[float, float, float]:
    """Each bettor's part of their common wealth after its own bet; the parts sum to 1."""
    first, second, third = (
        share * (1 - _signed(stake, effect)) for share, stake in zip(shares, stakes, strict=True)
    )
    total = first + second + third
    return first / total, second / total, third / total
