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
    "buffers": loops.buffers,
    "unloop": loops.unloop,
    "fission": loops.fission,
    "hoist": loops.hoist,
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
    "memory": ("clusters", "place", "load place", "block", "ring", "unloop", "merge loads"),
    "passes": ("clusters", "place", "undecoded", "lanes", "fuse", "unloop", "keep", "pieces"),
    "waiting": ("order", "buffers", "stay", "fission", "hoist", "split loads", "enloop"),
}
"""Moves that bear on a limit."""


_OFTEN: Final[Mapping[str, float]] = {
    "clusters": 4,
    "tidy": 4,
    "merge all": 3,
    "relayout": 3,
    "keep": 3,
    "lanes": 3,
    "undecoded": 2,
    "stay": 2,
    "unloop": 2,
}
"""Moves that change much at once, or pay in most kernels."""


def weights(limit: Limit | None) -> Mapping[str, float]:
    """Return how often each move is tried beside others, by what limits a kernel."""
    first = _FIRST[limit] if limit else ()
    return {move: _OFTEN.get(move, 1.0) * (2.0 if move in first else 1.0) for move in MOVES}
