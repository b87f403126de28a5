"""The verdict on a measured candidate, and the price of a measurement after it."""

from functools import lru_cache

from decisions import acceptance
from decisions.capital import Scale
from decisions.device import MAX_FAILURES
from decisions.due import Due
from decisions.price import RUNS_PER_PAIR, Price, allowance, next_price
from events.campaign import Acceptance
from events.projections.state import State
from events.projections.tree import Node, Status
from events.vocabulary import CandidateAccepted, CandidateRejected, CandidateShelved, Pair

MAX_FAULTS = 2
"""Device jobs of one candidate that fail by its own fault; the first may be the machine's."""
DEFAULT_SHARE = 10.0
"""Measurements that a candidate may cost while nothing limits them or nothing is known."""


@lru_cache(maxsize=256)
def _judge(
    pairs: tuple[Pair, ...], known: Scale, policy: Acceptance, price: float
) -> acceptance.Verdict:
    return acceptance.judge(pairs, known, policy, price)


def price(state: State) -> float:
    """Price of a measurement now, log-percent."""
    return state.tree.price or state.begun.campaign.acceptance.start_price


def verdict(state: State) -> Due | None:
    """Decide about an open candidate with new evidence, or whose premises are gone."""
    for branch in state.tree.branches.values():
        for candidate in branch.open:
            node = state.tree.nodes[candidate]
            if node.status is not Status.QUEUED or _is_running(state, candidate):
                continue
            due = _stale(state, node) or _failed(state, node) or _judged(state, node)
            if due:
                return due
    return None


def _is_running(state: State, candidate: int) -> bool:
    running = state.ledger.running
    return running is not None and running.candidate == candidate


def _stale(state: State, node: Node) -> Due | None:
    branch = state.tree.branches[node.kernel]
    if node.form != "step" or node.parent == branch.incumbent:
        return None
    why = f"a step on c{node.parent}, which c{branch.incumbent} has replaced"
    because = (node.proposed, state.tree.nodes[branch.incumbent or 0].decided or 0)
    return Due(_shelved(state, node, _verdict(state, node), why), because)


def _failed(state: State, node: Node) -> Due | None:
    failure = node.failed
    if failure is None:
        return None
    if failure.arm == "candidate" and node.faults >= MAX_FAULTS:
        reason = f"on the device: {failure.reason}"
        return Due(_rejected(state, node, _verdict(state, node), reason), _why(node))
    if node.failures < MAX_FAILURES:
        return None
    reason = f"{node.failures} device jobs failed: {failure.reason}"
    return Due(_shelved(state, node, _verdict(state, node), reason), _why(node))


def _verdict(state: State, node: Node) -> acceptance.Verdict | None:
    """What the pairs of a candidate against its opponent say; None if there are none."""
    if not node.pairs or node.scale is None:
        return None
    known = Scale(pair=node.scale[0], slot=node.scale[1])
    return _judge(node.pairs, known, state.begun.campaign.acceptance, price(state))


def _judged(state: State, node: Node) -> Due | None:
    verdict = _verdict(state, node)
    if verdict is None or node.opponent != state.tree.branches[node.kernel].incumbent:
        return None
    match verdict.outcome:
        case "continue":
            return None
        case "accept":
            return Due(_accepted(state, node, verdict), _why(node))
        case "reject":
            return Due(_rejected(state, node, verdict, verdict.reason), _why(node))
        case "park":
            return Due(_shelved(state, node, verdict, verdict.reason), _why(node))


def _why(node: Node) -> tuple[int, ...]:
    return node.evidence or (node.proposed,)


def _accepted(state: State, node: Node, verdict: acceptance.Verdict) -> CandidateAccepted:
    if verdict.effect is None or verdict.low is None or verdict.high is None:
        raise ValueError(f"c{node.candidate}: an accept without an effect")
    return CandidateAccepted(
        candidate=node.candidate,
        incumbent=node.opponent or 0,
        capital=verdict.capital,
        n_pairs=verdict.n_pairs,
        effect=verdict.effect,
        low=verdict.low,
        high=verdict.high,
        next_price=_next_price(state, node),
        reason=verdict.reason,
    )


def _rejected(
    state: State, node: Node, verdict: acceptance.Verdict | None, reason: str
) -> CandidateRejected:
    return CandidateRejected(
        candidate=node.candidate,
        incumbent=state.tree.incumbent(node.kernel).candidate,
        capital=verdict.capital if verdict else 1.0,
        n_pairs=len(node.pairs),
        effect=verdict.effect if verdict else None,
        low=verdict.low if verdict else None,
        high=verdict.high if verdict else None,
        next_price=_next_price(state, node),
        reason=reason,
    )


def _shelved(
    state: State, node: Node, verdict: acceptance.Verdict | None, reason: str
) -> CandidateShelved:
    can_go_on = verdict is not None and verdict.outcome == "park" and node.failures < MAX_FAILURES
    return CandidateShelved(
        candidate=node.candidate,
        premise_parent=node.opponent or node.parent or 0,
        premise_toolchain=node.toolchain,
        capital=verdict.capital if verdict else 1.0,
        n_pairs=len(node.pairs),
        effect=verdict.effect if verdict else None,
        low=verdict.low if verdict else None,
        high=verdict.high if verdict else None,
        index=verdict.index if verdict and can_go_on else None,
        price=price(state),
        next_price=_next_price(state, node),
        reason=reason,
    )


def _next_price(state: State, node: Node) -> float:
    """Price after this verdict: it follows what candidates cost against what they may cost.

    Pairs that an earlier verdict has paid for are not paid for again.
    """
    n_new = len(node.pairs) - node.n_pairs
    if n_new == 0:
        return price(state)
    return next_price(Price(price(state)), float(RUNS_PER_PAIR * n_new), share(state)).value


def share(state: State) -> float:
    """Measurements that a candidate may cost: those left over the candidates still expected."""
    limit_s, spent = state.spending.limits.device_s, state.spending.settled.device_s
    if limit_s is None or not state.ledger.candidate_pairs or not spent:
        return DEFAULT_SHARE
    n_open = sum(len(branch.open) for branch in state.tree.branches.values())
    n_left = state.begun.campaign.search.max_candidates - state.tree.n_search + n_open
    per_measurement_s = spent / (RUNS_PER_PAIR * state.ledger.candidate_pairs)
    left_s = max(0.0, limit_s - spent)
    return max(1.0, allowance(left_s / per_measurement_s, n_left))
