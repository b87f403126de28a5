"""All moves, by name."""

from collections.abc import Mapping
from typing import Final

from targets.sim.moves import exchange, loads, loops, order, passes, places
from targets.sim.moves.bottleneck import Limit
from targets.sim.moves.change import Move

MOVES: Final[Mapping[str, Move]] = {
    "clusters": places.clusters,
    "place": places.place,
    "relayout": places.relayout,
    "load place": places.replace_load,
    "load there": places.move_load,
    "tiles": loops.tiles,
    "other axis": loops.other_axis,
    "buffers": loops.buffers,
    "unloop": loops.unloop,
    "fission": loops.fission,
    "hoist": loops.hoist,
    "whole loads": loops.whole_loads,
    "fuse loops": loops.fuse_loops,
    "interchange": loops.interchange,
    "enloop": loops.enloop,
    "merge loads": loads.merge,
    "merge all": loads.merge_all,
    "split loads": loads.split,
    "block": loads.block,
    "order": order.order,
    "all loads": order.sort_loads,
    "fuse": passes.fuse,
    "tidy": passes.tidy,
    "unswitch": passes.unswitched,
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
    "memory": (
        "clusters",
        "place",
        "load place",
        "block",
        "ring",
        "unloop",
        "whole loads",
        "merge loads",
    ),
    "passes": ("clusters", "place", "undecoded", "lanes", "fuse", "unloop", "keep", "pieces"),
    "waiting": ("order", "buffers", "stay", "fission", "hoist", "split loads", "enloop"),
}
"""Moves that bear on a limit."""


_OFTEN: Final[Mapping[str, float]] = {
    "tidy": 4,
    "whole loads": 3,
    "hoist": 3,
    "unloop": 3,
    "block": 3,
    "merge all": 2,
    "keep": 2,
    "lanes": 2,
    "undecoded": 2,
    "stay": 2,
    "tiles": 2,
    "buffers": 2,
    "fission": 2,
    "order": 2,
    "fuse": 2,
    "place": 4,
    "load place": 3,
    "split": 0.5,
    "context": 0.5,
    "gather": 0.5,
    "interchange": 0.3,
    "dtype": 0.3,
    "decoded": 0.2,
}
"""How often a move is tried beside others, by how often it pays."""


def weights(limit: Limit | None) -> Mapping[str, float]:
    """Return how often each move is tried beside others, by what limits a kernel."""
    first = _FIRST[limit] if limit else ()
    return {move: _OFTEN.get(move, 1.0) * (2.0 if move in first else 1.0) for move in MOVES}
