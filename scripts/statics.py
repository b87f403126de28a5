"""Static costs in words: a compiler's belief, never a reading."""

from dataclasses import dataclass

from decisions.static_cost import reliability
from events.projections.tree import Branch, DesignTree, Node


@dataclass(frozen=True)
class Static:
    """What the cost model says of a candidate."""

    cycles: int
    change: float | None
    """Against its parent, log-percent; None without a parent of the same toolchain."""

    def __str__(self) -> str:
        against = "" if self.change is None else f", {self.change:+.2f} log-percent to its parent"
        return f"{self.cycles:,} static cycles{against}"


def static(tree: DesignTree, node: Node) -> Static | None:
    """Return a candidate's static cost, None if it has none."""
    if node.cost is None:
        return None
    change = None if node.parent is None else tree.static_change(node.candidate, node.parent)
    return Static(node.cost.cycles, change)


def agreement(branch: Branch) -> str:
    """How often static and device changes had the same sign; "" if nothing was compared."""
    seen = branch.agreement
    if not seen.n_compared:
        return ""
    return (
        f"static and device changes had the same sign in {seen.n_agreed} of {seen.n_compared} "
        f"(reliability {reliability(branch):.2f}); static at most {seen.worst:.1f} log-percent too "
        "pessimistic"
    )
