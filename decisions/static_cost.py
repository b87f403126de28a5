"""What follows from static costs before a candidate meets the device: an order, seldom a refusal.

A static cost is a hint with a measured reliability. The device decides; the hint only says who goes
first, and turns away what is far beyond any error that it has ever made.
"""

from collections.abc import Sequence

from events.projections.agreement import NEUTRAL
from events.projections.state import State
from events.projections.tree import Branch, Node

PRIOR_COMPARED, PRIOR_AGREED = 10.0, 7.1
"""What a kernel's own comparisons are added to.

On the real chip the signs of static and device changes agreed in 65 of 92 cases. That counts like
ten, so that a kernel's own experience soon outweighs it.
"""
RESERVED = 5
"""Of so many tests begun one is of a static-neutral candidate, if any waits."""
FEWEST = 10
"""Comparisons without which a static cost refuses nothing."""
LEAST_ERROR = 20.0
"""A static cost may always be too pessimistic by this, log-percent."""
MARGIN = 2.0
"""Refused is what is predicted slower than so many times the worst error so far."""


def reliability(branch: Branch) -> float:
    """Probability that the device agrees with the side of a static change of this kernel.

    It is the mean of a Beta distribution.
    """
    seen = branch.agreement
    return (PRIOR_AGREED + seen.n_agreed) / (PRIOR_COMPARED + seen.n_compared)


def change(state: State, node: Node) -> float | None:
    """Static change of a candidate against its kernel's best version, log-percent."""
    best = state.tree.branches[node.kernel].incumbent
    return None if best is None else state.tree.static_change(node.candidate, best)


def first(state: State, kernel: str, queued: Sequence[Node]) -> tuple[Node, str]:
    """Choose which of the candidates without a pair meets the best version next, and say why.

    All of them have the same prior belief, and so the same index; what tells them apart is the
    change to expect, which shrinks with the reliability of the hint and turns around below a half.

    Args:
        state: of the run.
        kernel: of the candidates.
        queued: at least one, the oldest first.
    """
    branch = state.tree.branches[kernel]
    changes = {node.candidate: change(state, node) for node in queued}
    neutral = [n for n in queued if _is_neutral(changes[n.candidate])]
    if neutral and branch.n_started % RESERVED == RESERVED - 1:
        return neutral[0], "the share of static-neutral candidates"
    trust = 2 * reliability(branch) - 1

    def expected(node: Node) -> float:
        hint = changes[node.candidate]
        return 0.0 if hint is None or _is_neutral(hint) else trust * hint

    best = min(queued, key=expected)
    return best, "next in the queue" if expected(best) == 0 else "the best static cost in the queue"


def hopeless(state: State, node: Node) -> str:
    """Why a static cost alone refuses a candidate; "" if it does not."""
    seen = state.tree.branches[node.kernel].agreement
    hint = change(state, node) if node.is_search else None
    limit = MARGIN * max(seen.worst, LEAST_ERROR)
    if hint is None or seen.n_compared < FEWEST or hint <= limit:
        return ""
    return (
        f"static cost {hint:.0f} log-percent above the best version's, limit {limit:.0f}; "
        f"none so far was too pessimistic by more than {seen.worst:.0f}"
    )


def _is_neutral(hint: float | None) -> bool:
    return hint is not None and abs(hint) < NEUTRAL
