"""Whole-kernel designs: recipes that make several moves at once, by the static model's advice."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sim.npu.syntax import KernelText
from sim.npu.toolchain import Toolchain
from targets.sim.moves.registry import MOVES
from targets.sim.moves.search import attempt
from targets.sim.moves.settle import settled

_SAMPLE: Final = 24
"""Changes of one move that are tried for one ingredient."""
_MAX_REPEATS: Final = 12
_VARIANTS: Final = 3


class Ingredient(NamedTuple):
    """One move of a recipe."""

    move: str
    repeated: bool
    """Made as often as it does no harm, not once."""


@dataclass(frozen=True)
class Recipe:
    """Moves that make a design together."""

    idea: str
    ingredients: tuple[Ingredient, ...]


def _recipe(idea: str, *moves: str) -> Recipe:
    parts = (Ingredient(move.rstrip("*"), move.endswith("*")) for move in moves)
    return Recipe(idea, tuple(parts))


RECIPES: Final[Mapping[str, Recipe]] = {
    "two-clusters": _recipe(
        "Rows of the weights over both clusters, small vectors copied to both.",
        "clusters",
        "lanes",
        "fuse*",
    ),
    "pieces": _recipe(
        "Split the operands in f8 pieces and contract f8 weights as they are, without lookups.",
        "undecoded",
        "lanes",
        "fuse*",
    ),
    "few-passes": _recipe(
        "Fuse passes as far as the line of stages goes, and keep the tables in the unit.",
        "fuse*",
        "copy*",
        "keep",
        "lanes",
    ),
    "large-commands": _recipe(
        "Move whole tensors in few large loads, ahead of the passes.",
        "unloop*",
        "hoist*",
        "merge loads*",
    ),
    "columns": _recipe(
        "Cut the columns over slices as well, and reduce the partial sums around the ring.",
        "place",
        "place",
        "lanes",
        "fuse*",
    ),
    "no-scratch": _recipe(
        "Leave results in their slices and gather what must be whole: no way through HBM.",
        "stay",
        "stay",
        "stay",
        "fuse*",
    ),
    "few-copies": _recipe(
        "Load small vectors to a few slices and let the ring carry them on.",
        "ring",
        "load place",
        "load place",
        "fuse*",
    ),
    "decode-ahead": _recipe(
        "Load and decode weights in loops of their own, while others compute.",
        "split",
        "fission*",
        "order*",
    ),
}


@dataclass(frozen=True)
class Design:
    """A recipe in one of its variants."""

    recipe: str
    variant: int
    """How many of the choices that the static model likes best are passed over."""

    @property
    def name(self) -> str:
        """Of the move."""
        return f"{self.recipe}/{self.variant}"

    @property
    def idea(self) -> str:
        """In words."""
        return RECIPES[self.recipe].idea


def designs(seed: int) -> Iterator[Design]:
    """Yield every design, the variants that the static model likes best first."""
    names = list(RECIPES)
    for variant in range(_VARIANTS):
        turn = (seed + variant) % len(names)
        yield from (Design(name, variant) for name in (*names[turn:], *names[:turn]))


def built(design: Design, kernel: KernelText, toolchain: Toolchain) -> KernelText:
    """Return ``kernel`` with a design's moves made; those that cannot be made are left out."""
    cook = _Cook(kernel, toolchain, random.Random(design.name))
    for k, part in enumerate(RECIPES[design.recipe].ingredients):
        if part.repeated:
            cook.repeat(part.move)
        else:
            cook.once(part.move, design.variant if k == 0 else 0)
    return cook.kernel


class _Cook:
    """A kernel on its way through a recipe."""

    def __init__(self, kernel: KernelText, toolchain: Toolchain, chance: random.Random) -> None:
        self.kernel = kernel
        self._toolchain = toolchain
        self._random = chance

    def once(self, move: str, passed_over: int) -> None:
        """Make the change of a move that is best by static cost, or the next best ones."""
        tried = sorted(self._tried(move), key=lambda pair: pair[0])
        if tried:
            self.kernel = tried[min(passed_over, len(tried) - 1)][1]

    def repeat(self, move: str) -> None:
        """Make changes of a move one after the other as long as none makes the kernel longer."""
        for _ in range(_MAX_REPEATS):
            plan = attempt(self.kernel, self._toolchain)
            if plan is None:
                return
            better = (k for cost, k in self._tried(move) if cost < plan.makespan)
            found = next(better, None)
            if found is None:
                return
            self.kernel = found

    def _tried(self, move: str) -> Iterator[tuple[float, KernelText]]:
        changes = list(MOVES[move](self.kernel))
        for change in self._random.sample(changes, min(_SAMPLE, len(changes))):
            kernel = settled(change.make())
            plan = attempt(kernel, self._toolchain)
            if plan is not None and kernel != self.kernel:
                yield plan.makespan, kernel
