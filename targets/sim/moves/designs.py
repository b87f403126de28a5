"""Whole-kernel designs: a small systematic family, whatever the kernel."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

from sim.npu.syntax import KernelText
from sim.npu.toolchain import Toolchain
from targets.sim.moves.blueprint import (
    carried,
    in_pieces,
    in_runs,
    kept_in_place,
    shared,
    spread,
    unlooped,
)
from targets.sim.moves.loads import merged
from targets.sim.moves.passes import tidied
from targets.sim.moves.pipeline import decoded_ahead, halved, small_first, streamed, tiled
from targets.sim.moves.settle import settled

_PIECES: Final = 2
_PARTS: Final = 16
"""Slices that share a vector at the end of a kernel."""
_LOADED: Final = 4
"""Tensors of a command, at most."""
_COLUMNS: Final = (16, 1)
_COPIES: Final = (4, 2, 1, 8)
_LATE_COPIES: Final = 8
_TILES: Final = ((3, True), (3, False), (0, True))
_RUNS: Final = (256, 512)


@dataclass(frozen=True)
class Design:
    """One of the family."""

    columns: int
    """Parts of a weight's row, where they are long enough."""
    copies: int
    """Of an activation, from memory; the ring makes the others."""
    tiles: int
    """Of weights as they come; 0 for whole tensors."""
    late: bool
    """Tiles only of weights that wait for a result of the same kernel."""
    runs: int
    """Bytes that are read in a piece."""

    @property
    def name(self) -> str:
        """Of the move."""
        tiles = f"{self.tiles}{'-late' if self.late else ''}"
        return f"columns-{self.columns}/copies-{self.copies}/tiles-{tiles}/runs-{self.runs}"

    @property
    def idea(self) -> str:
        """In words."""
        rows = f"rows over both clusters and all slices, up to {self.columns} slices to a row"
        how = f"in runs of {self.runs} bytes"
        when = "the late ones" if self.late else "all"
        tiles = f", {when} in {self.tiles} tiles" if self.tiles else ", each as a whole"
        return (
            f"Weights by {rows}, {how}{tiles}; f8 pieces instead of lookups; activations in "
            f"{self.copies} copies and around the ring; results stay in their slices."
        )


def designs(seed: int) -> Iterator[Design]:
    """Yield every design, the likely ones first; which of them is the first depends on the seed."""
    for runs, columns in product(_RUNS, _COLUMNS):
        family = [Design(columns, n, *tiles, runs) for n, tiles in product(_COPIES, _TILES)]
        turn = seed % len(family)
        yield from (*family[turn:], *family[:turn])


def built(design: Design, kernel: KernelText, toolchain: Toolchain) -> KernelText:
    """Return ``kernel`` rebuilt as a design says; it may be illegal."""
    steps = (
        unlooped,
        partial(in_pieces, n=_PIECES),
        tidied,
        partial(carried, n_copies=design.copies, n_late=_LATE_COPIES),
        partial(spread, columns=design.columns),
        partial(shared, parts=_PARTS),
        partial(in_runs, n_bytes=design.runs),
        decoded_ahead,
        partial(tiled, toolchain=toolchain),
        partial(kept_in_place, toolchain=toolchain),
        tidied,
        small_first,
        partial(merged, n=_LOADED),
        halved,
        partial(streamed, n=design.tiles, late=design.late),
    )
    for step in steps:
        kernel = settled(step(kernel))
    return kernel
