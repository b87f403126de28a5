"""Show every candidate of a run: whose child it is, what became of it, and by how much."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from decisions.posterior import WIDEST
from events.projections.state import replay
from events.projections.tree import DesignTree, Node, Status
from events.vocabulary import CandidateId
from scripts.operated import ordered
from scripts.plain import one_line
from scripts.progress import times
from scripts.readings import stand_in
from scripts.runs import UsageError, recorded, without_traceback
from scripts.statics import agreement, static

STYLES = {
    Status.ACCEPTED: "bold green",
    Status.REJECTED: "red",
    Status.REFUSED: "dim",
    Status.SHELVED: "yellow",
    Status.WITHDRAWN: "red",
}
MAX_WORDS = 60
"""Characters of a hypothesis or a reason that a line has room for."""
MAX_INDENT = 10
"""Steps of indentation: chains of accepts grow longer than a terminal is wide."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Print the tree of one kernel or of all; return 0."""
    args = _parser().parse_args(argv)
    records, _ = recorded(args.run)
    state, orders = replay(records), ordered(records)
    tree = state.tree
    kernels = _kernels(tree, args.kernel)
    if args.as_json:
        print(json.dumps({kernel: _table(tree, kernel) for kernel in kernels}))
        return 0
    console = Console() if sys.stdout.isatty() else None
    if device := stand_in(state.toolchain):
        _print(console, f"readings: {device}", "yellow")
    for kernel in kernels:
        show(tree, kernel, console)
    for order in orders:
        if order.kernel in (None, *kernels):
            told = f"{order.what} {order.detail} {order.outcome}"
            _print(console, f"record {order.seq}: {one_line(told)}", "cyan")
    return 0


def show(tree: DesignTree, kernel: str, console: Console | None) -> None:
    """Print the tree of a kernel, every candidate in one line."""
    _print(console, kernel, "bold")
    for depth, node in walk(tree, kernel):
        text = "  " * min(depth + 1, MAX_INDENT) + line(tree, node)
        _print(console, text, STYLES.get(node.status, ""))
    if told := agreement(tree.branches[kernel]):
        _print(console, f"  {told}", "cyan")


def _print(console: Console | None, text: str, style: str) -> None:
    """On a terminal in its style and as far as it fits, elsewhere whole."""
    if console is None:
        print(text)
    else:
        console.print(Text(text, style), no_wrap=True, overflow="ellipsis")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright tree", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--kernel", metavar="K", help="this kernel only")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return parser


def _kernels(tree: DesignTree, wanted: str | None) -> list[str]:
    known = list(tree.branches)
    if wanted is None:
        return known
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
        raise UsageError(f"no kernel {wanted!r} in this run; {hint}")
    return [wanted]


def walk(tree: DesignTree, kernel: str) -> Iterator[tuple[int, Node]]:
    """Iterate over a kernel's candidates with their depth, parents before children."""
    children: dict[CandidateId | None, list[Node]] = {}
    for candidate in tree.branches[kernel].nodes:
        node = tree.nodes[candidate]
        children.setdefault(node.parent, []).append(node)
    waiting = [(0, node) for node in reversed(children.get(None, []))]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        below = reversed(children.get(node.candidate, []))
        waiting += [(depth + 1, child) for child in below]


def line(tree: DesignTree, node: Node) -> str:
    """One candidate in one line: verdict, speed-up over its opponent with interval, and why."""
    parent = "" if node.parent is None else f" on c{node.parent}"
    parts = [f"c{node.candidate}{parent}", _best(tree, node), str(node.form), str(node.status)]
    if node.effect is not None:
        parts.append(_effect(node))
    cost = static(tree, node)
    if cost is not None and cost.change is not None:
        parts.append(f"static {times(cost.change)}x")
    told = node.status in (Status.REFUSED, Status.SHELVED, Status.WITHDRAWN)
    why = node.reason if told else node.hypothesis
    return "  ".join(filter(None, [*parts, _short(node.move), _short(why)]))


def _best(tree: DesignTree, node: Node) -> str:
    """Mark the best version, with its speed-up over the baseline: as measured last, or claimed."""
    branch = tree.branches[node.kernel]
    if node.candidate != branch.incumbent:
        return ""
    if branch.finished is not None:
        return f"BEST {branch.finished.speedup:.2f}x"
    return f"BEST {tree.speedup(node.candidate):.2f}x as accepted"


def _effect(node: Node) -> str:
    """Speed-up over the opponent; the interval's ends change places, since effects are of times."""
    if node.effect is None:
        return ""
    interval = ""
    if node.low is not None and node.high is not None and node.high - node.low < WIDEST:
        interval = f" ({times(node.high)}..{times(node.low)})"
    return f"{times(node.effect)}x{interval} over c{node.opponent}, {node.n_pairs} pairs"


def _short(text: str) -> str:
    words = one_line(text)
    return words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 3] + "..."


def _table(tree: DesignTree, kernel: str) -> list[dict[str, Any]]:
    best = tree.branches[kernel].incumbent
    return [
        {
            "candidate": node.candidate,
            "parent": node.parent,
            "depth": depth,
            "form": node.form,
            "status": str(node.status),
            "best": node.candidate == best,
            "opponent": node.opponent,
            "effect_log_percent": node.effect,
            "low_log_percent": node.low,
            "high_log_percent": node.high,
            "n_pairs": node.n_pairs,
            "static_cycles": node.cost.cycles if node.cost else None,
            "static_change_log_percent": cost.change if (cost := static(tree, node)) else None,
            "move": node.move,
            "author": node.author,
            "hypothesis": node.hypothesis,
            "reason": node.reason,
            "source": node.source,
        }
        for depth, node in walk(tree, kernel)
    ]
