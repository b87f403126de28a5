"""The verdict on a measured candidate: the only decision that changes a kernel's best version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from decisions.capital import Scale, capital, effect_of
from decisions.posterior import Posterior, interval, posterior, spread
from decisions.price import LOWEST, index
from decisions.rounding import rounded
from events.campaign import Acceptance
from events.vocabulary import Pair

SENTINEL_LIMIT = 1000.0
"""Capital of a sentinel, either way, at which the harness is broken and accepting must stop."""


@dataclass(frozen=True)
class Verdict:
    """What the pairs of one candidate say."""

    outcome: Literal["accept", "reject", "park", "continue"]
    capital: float
    """Of the bet on "faster"; accepted at 1/alpha."""
    n_pairs: int
    effect: float | None
    """Posterior mean, log-percent; None before the first pair."""
    low: float | None
    """95 % confidence sequence at the stop; None while measuring goes on."""
    high: float | None
    index: float
    """Expected gain per measurement of going on, log-percent."""
    reason: str
    """One sentence for people."""


def judge(pairs: Sequence[Pair], scale: Scale, policy: Acceptance, price: float) -> Verdict:
    """Decide what follows from the pairs of one candidate against one incumbent.

    Args:
        pairs: all of them, in the order measured.
        scale: noise of this kernel's pairs.
        policy: alpha and the most pairs of one candidate.
        price: what a measurement must be expected to earn, log-percent.
    """
    effects = [effect_of(pair, scale.slot) for pair in pairs]
    held = _held(effects, scale.pair, policy.alpha)
    against = _held([-effect for effect in effects], scale.pair, policy.alpha)
    noise = spread(effects, scale.pair)
    belief = posterior(effects, noise)
    worth = rounded(index(belief, held, noise, policy.alpha), 6)
    outcome, reason = _outcome(len(effects), held, against, worth, policy, price)
    if outcome == "continue":
        low = high = None
    else:
        low, high = (round(end, 6) for end in interval(effects, scale.pair))
    return Verdict(
        outcome=outcome,
        capital=held if outcome == "accept" else rounded(held),
        n_pairs=len(effects),
        effect=round(belief.mean, 6) if effects else None,
        low=low,
        high=high,
        index=worth,
        reason=f"{_summary(effects, belief, held)}: {reason}",
    )


def sentinel(pairs: Sequence[Pair], scale: Scale) -> tuple[float, float]:
    """Test A/A pairs against each other, both ways.

    Returns:
        Capital of "the copy is faster" and of "the incumbent is faster"; either one at
        `SENTINEL_LIMIT` means that the harness favours an arm.
    """
    effects = [effect_of(pair, scale.slot) for pair in pairs]
    return (
        _held(effects, scale.pair, 1 / SENTINEL_LIMIT),
        _held([-effect for effect in effects], scale.pair, 1 / SENTINEL_LIMIT),
    )


def _held(effects: Sequence[float], scale: float, alpha: float) -> float:
    path = capital(effects, scale, alpha)
    return path[-1] if path else 1.0


def _outcome(
    n_pairs: int, held: float, against: float, worth: float, policy: Acceptance, price: float
) -> tuple[Literal["accept", "reject", "park", "continue"], str]:
    limit = 1 / policy.alpha
    if held >= limit:
        return "accept", f"its capital has reached 1/alpha = {limit:g}"
    if against >= limit:
        return "reject", f"the same test says slower with capital {limit:g}"
    if n_pairs == 0:
        return "continue", "every candidate gets its first pair"
    if worth < LOWEST:
        return "reject", f"a gain per measurement of {worth:.1g} is below any price"
    if n_pairs >= policy.max_pairs:
        return "park", f"no verdict within {policy.max_pairs} pairs"
    if worth < price:
        return "park", f"a gain per measurement of {worth:.2g} is below the price {price:.2g}"
    return "continue", f"a gain per measurement of {worth:.2g} is worth the price {price:.2g}"


def _summary(effects: Sequence[float], belief: Posterior, held: float) -> str:
    if not effects:
        return "no pairs yet"
    return (
        f"{len(effects)} pairs, effect {belief.mean:+.2f} +- {belief.sd:.2f} log-percent, "
        f"faster with probability {belief.p_faster:.2g}, capital {held:.3g}"
    )
