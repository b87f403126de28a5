"""All moves, by name."""

from collections.abc import Mapping
from typing import Final

from targets.sim.moves import exchange, loads, loops, order, passes, places
from targets.sim.moves.bottleneck import Limit
from targets.sim.moves.change import Move

MOVES: Final[Mapping[str, Move]] = {
    "clusters": places.clusters,
    "place": places.place,
    "load place": places.replace_load,
    "load there": places.move_load,
    "tiles": loops.tiles,
    "buffers": loops.buffers,
    "unloop": loops.unloop,
    "fission": loops.fission,
    "hoist": loops.hoist,
    "fuse loops": loops.fuse_loops,
    "interchange": loops.interchange,
    "enloop": loops.enloop,
    "merge loads": loads.merge,
    "split loads": loads.split,
    "block": loads.block,
    "order": order.order,
    "all loads": order.sort_loads,
    "fuse": passes.fuse,
    "split": passes.split,
    "copy": passes.copies,
    "context": passes.context,
    "dtype": passes.dtype,
    "lanes": passes.lanes,
    "pieces": passes.pieces,
    "undecoded": passes.undecoded,
    "decoded": passes.decoded,
    "keep": passes.keep,
    "stay": exchange.stay,
    "gather": exchange.gather,
    "ring": exchange.ring,
}

_FIRST: Final[Mapping[Limit, tuple[str, ...]]] = {
    "memory": ("clusters", "place", "load place", "block", "ring", "unloop", "merge loads"),
    "passes": ("clusters", "place", "undecoded", "lanes", "fuse", "unloop", "keep", "pieces"),
    "waiting": ("order", "buffers", "stay", "fission", "hoist", "split loads", "enloop"),
}
"""Moves that bear on a limit."""


def weights(limit: Limit | None) -> Mapping[str, float]:
    """Return how much more often than others each move is tried, by what limits a kernel."""
    first = _FIRST[limit] if limit else ()
    return {move: 2.0 if move in first else 1.0 for move in MOVES}
