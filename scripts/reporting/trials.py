"""The device evidence of one candidate, with the capital recomputed pair by pair."""

from collections.abc import Sequence
from dataclasses import dataclass

from decisions.capital import capital, effect_of
from events.projections.tree import Node
from events.vocabulary import CandidateId, Pair, PairsMeasured
from scripts.reporting.history import Run


@dataclass(frozen=True)
class Reading:
    """One pair as the acceptance test saw it."""

    seq: int
    """Record that holds it."""
    candidate_first: bool
    incumbent_s: float
    candidate_s: float
    effect: float
    """Log-percent without the slot effect; negative is faster."""
    capital: float
    """After this pair."""


@dataclass(frozen=True)
class DeviceMargin:
    """Correctness checked again on the device, by one job."""

    seq: int
    incumbent: float
    candidate: float


@dataclass(frozen=True)
class Trial:
    """A candidate's pairs against one incumbent."""

    opponent: CandidateId
    scale: tuple[float, float]
    """Pair scale and slot effect, log-percent, fixed before the first pair."""
    limit: float
    """Capital at which a candidate is accepted."""
    readings: tuple[Reading, ...]
    margins: tuple[DeviceMargin, ...]
    seqs: tuple[int, ...]


def readings(
    pairs: Sequence[tuple[int, Pair]], scale: tuple[float, float], alpha: float
) -> tuple[Reading, ...]:
    """Read pairs, each with its record, by a pair scale and a slot effect."""
    pair_scale, slot = scale
    effects = [effect_of(pair, slot) for _, pair in pairs]
    path = capital(effects, pair_scale, alpha)
    return tuple(
        Reading(seq, pair.candidate_first, pair.incumbent_s, pair.candidate_s, effect, held)
        for (seq, pair), effect, held in zip(pairs, effects, path, strict=True)
    )


def trial(run: Run, node: Node) -> Trial | None:
    """Return the pairs behind a candidate's last verdict, or so far; None if it has none."""
    if node.opponent is None:
        return None
    jobs = run.comparisons.get((node.candidate, node.opponent), [])
    replies = [(r.seq, r.event) for _, r in jobs if isinstance(r.event, PairsMeasured)]
    scale = jobs[-1].request.scale if jobs else None
    if not replies or scale is None:
        return None
    pairs = [(seq, pair) for seq, event in replies for pair in event.pairs]
    alpha = run.state.begun.campaign.acceptance.alpha
    margins = tuple(DeviceMargin(s, e.incumbent_margin, e.candidate_margin) for s, e in replies)
    return Trial(
        opponent=node.opponent,
        scale=scale,
        limit=1 / alpha,
        readings=readings(pairs, scale, alpha),
        margins=margins,
        seqs=tuple(r.seq for _, r in jobs),
    )
