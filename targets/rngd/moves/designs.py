"""Whole-kernel designs, in an explorer's order, without foresight."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from targets.rngd.moves.kernels import possible, source
from targets.rngd.moves.recipe import Recipe
from targets.rngd.task import Task


@dataclass(frozen=True)
class Design:
    """A recipe with the idea behind it."""

    name: str
    idea: str
    """What changes and why: the hypothesis."""
    speedup: float
    """Expected, over the baseline."""
    recipe: Recipe


_UNROLLED: Final = (
    "A loop that is written out several turns at a time lets the next tile's weights arrive "
    "while one is multiplied."
)

DESIGNS: Final = (
    Design("unrolled-by-four", _UNROLLED, 1.5, Recipe(tile=256, unroll=4)),
    Design("unrolled-by-five", _UNROLLED, 1.5, Recipe(tile=256, unroll=5)),
    Design(
        "whole",
        "Without loops the compiler sees every matrix at once: it tiles, places and prefetches "
        "by itself.",
        4.0,
        Recipe(),
    ),
    Design(
        "fused-tiles",
        "Vector operations that follow each other as one operation read and write their vectors "
        "once; the loops stay.",
        1.2,
        Recipe(tile=256, chains="fused"),
    ),
    Design(
        "fused",
        "Whole matrices, and vector operations that follow each other as one: nothing is "
        "written only to be read again.",
        4.5,
        Recipe(chains="fused"),
    ),
    Design(
        "block-products",
        "The dot product engine multiplies undecoded values block by block, and the scales are "
        "applied to the blocks' sums, which are fewer than the weights.",
        4.0,
        Recipe(multiply="blocks", chains="fused"),
    ),
    Design(
        "split-last",
        "With the last matrix in two parts, most of it is multiplied while the rest still arrives.",
        5.0,
        Recipe(chains="fused", last=8),
    ),
    Design(
        "one-pass",
        "The vector engine reads the stored weights once and decodes, scales, multiplies and "
        "sums them on the way; decoded weights are never written.",
        5.0,
        Recipe(multiply="pass", chains="fused", vectors="f32", scales="inside"),
    ),
    Design(
        "wide",
        "Vectors in f32 need no narrowing between operations, and their rounding leaves room in "
        "the tolerance.",
        4.5,
        Recipe(chains="fused", vectors="f32", scales="inside"),
    ),
)


def designs(task: Task, seed: int) -> Iterator[Design]:
    """Yield a kernel's designs, each of another source.

    Args:
        task: the kernel.
        seed: rotates their order.
    """
    able = [design for design in DESIGNS if possible(task, design.recipe)]
    bodies = [source(task, design.recipe).partition("\n")[2] for design in able]
    distinct = [d for at, d in enumerate(able) if bodies.index(bodies[at]) == at]
    turn = seed % len(distinct)
    yield from (*distinct[turn:], *distinct[:turn])


def design_source(task: Task, design: Design) -> str:
    """Return the source of a design, its name and its choices at the top."""
    return source(task, design.recipe, f"# Design {design.name}.\n")
