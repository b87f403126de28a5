"""Which model is asked: drawn by what it has brought for what it has cost."""

from collections.abc import Sequence

from decisions.coins import secret_share
from decisions.settling import FREE, reservation
from events.campaign import RoleName
from events.projections.state import State
from events.vocabulary import Price, Spend, TurnAssigned

TURN_USD = 0.01
"""What a turn costs besides its model: time, and a share of screening and of the device."""
PRIOR_TURNS = 10
"""Turns' worth of the role's average return that every model is believed to have had."""
FLOOR = 0.2
"""Part of every draw that all models share alike, whatever they have brought."""
LIMITED = ("model_calls", "tokens", "cost_usd")
"""What a budget limits of a turn."""


def price(state: State, model: str) -> Price:
    """What a model takes."""
    is_free = state.begun.campaign.models[model].is_free
    return FREE if is_free else state.begun.prices[model]


def reserve(state: State, model: str) -> Spend:
    """The most that one turn of a model is expected to cost."""
    return reservation(state.begun.campaign.models[model], price(state, model))


def unaffordable(state: State, model: str) -> str | None:
    """Why a budget forbids one more turn of a model, or None."""
    limits, committed, cost = state.spending.limits, state.spending.committed, reserve(state, model)
    for name in LIMITED:
        limit, amount = getattr(limits, name), getattr(cost, name)
        if limit is not None and amount > 0 and getattr(committed, name) + amount > limit:
            return f"budget: {name}"
    return None


def is_busy(state: State, model: str) -> bool:
    """Whether as many turns wait for a model as it may have at a time."""
    settings = state.begun.campaign.models[model]
    turns = (r for r in state.pending.values() if isinstance(r, TurnAssigned))
    return not settings.is_free and sum(t.model == model for t in turns) >= settings.at_once


def can_ask(state: State, model: str) -> bool:
    """Whether a turn may be assigned to a model now."""
    return unaffordable(state, model) is None and not is_busy(state, model)


def draw(state: State, role: RoleName, turn: int) -> tuple[str, str] | None:
    """Choose the model of a turn among those of its role that can be asked now.

    Args:
        state: before the turn is assigned.
        role: whose models.
        turn: its number; the draw follows from it and the secret seed.

    Returns:
        Its name, and the reason in words: "" if the role has no other. None if there is none.
    """
    pool = state.begun.campaign.roles.of(role)
    able = [name for name in pool if can_ask(state, name)]
    if not able:
        return None
    if len(pool) == 1:
        return able[0], ""
    shares = weights(state, role, able)
    point = secret_share(state.begun.secret_seed, "model", turn)
    name = _at(point, able, shares)
    said = ", ".join(f"{n} {w:.3f}" for n, w in zip(able, shares, strict=True))
    return name, f"{name} drawn at {point:.3f} from {said}"


def weights(state: State, role: RoleName, names: Sequence[str]) -> list[float]:
    """How likely each of some models of a role is drawn; they sum to 1.

    A model's return is its gain per cost: log-percent of the accepted candidates that it had a
    part in, over US dollars, each turn at `TURN_USD` more than its model took. Every model is
    given `PRIOR_TURNS` turns of average cost and return, so that luck at the start does not
    decide. Weights are as the returns, but for a part `FLOOR` that is shared alike.
    """
    known = [state.returns.of(role, name) for name in names]
    costs = [each.cost_usd + TURN_USD * each.n_turns for each in known]
    n_turns, total, gain = sum(k.n_turns for k in known), sum(costs), sum(k.gain for k in known)
    even = 1 / len(names)
    if gain <= 0 or n_turns == 0:
        return [even] * len(names)
    prior = PRIOR_TURNS * total / n_turns
    returns = [
        (max(each.gain, 0.0) + prior * gain / total) / (cost + prior)
        for each, cost in zip(known, costs, strict=True)
    ]
    return [FLOOR * even + (1 - FLOOR) * each / sum(returns) for each in returns]


def _at(point: float, names: Sequence[str], shares: Sequence[float]) -> str:
    """The name in whose stretch of [0, 1) a point lies."""
    for name, share in zip(names, shares, strict=True):
        point -= share
        if point < 0:
            return name
    return names[-1]
