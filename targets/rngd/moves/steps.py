"""Small steps: one other choice, as edits of the best version."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

from targets.edits import Edit, edits
from targets.rngd.kernels import TASKS
from targets.rngd.moves.kernels import possible, source
from targets.rngd.moves.recipe import CHOICES, MEANINGS, Recipe, Value, recipe_in

Limit = Literal["loops", "decoding", "tail", "loads"]
"""What a version waits for: the turns of its loops, the weights' decoding, what is left to do when
the last weights are there, or the weights' arrival."""

_FIRST: Final[dict[Limit, tuple[str, ...]]] = {
    "loops": ("tile", "unroll", "chains"),
    "decoding": ("multiply", "chains"),
    "tail": ("last", "scales", "chains", "loads"),
    "loads": ("loads", "scales", "last"),
}
"""Choices to change first."""
_MOST_EDITS: Final = 12
_LOOP: Final = re.compile(r"^( *for \w+ in tcl\.range\(0, (\d+))(?:, unroll=\d+)?\):$", re.M)
_UNROLLS: Final = (2, 3, 4, 5, 8)


@dataclass(frozen=True)
class Step:
    """A change of a source."""

    choice: str
    value: Value
    edits: tuple[Edit, ...]
    sites: int = 1
    """Places where each edit's text stands."""

    @property
    def move(self) -> str:
        """Name of the move."""
        return f"step:{self.choice}={self.value}"

    @property
    def why(self) -> str:
        """What changes, in words."""
        return f"{self.choice} ({MEANINGS[self.choice]}) becomes {self.value}"


def steps(
    kernel: str, incumbent: str, limit: Limit | None, seed: int, tried: Container[str]
) -> Iterator[Step]:
    """Yield every step from a source that applies to it.

    Args:
        kernel: whose source it is.
        incumbent: the source; one that says no choices can only have its loops unrolled.
        limit: what it waits for, if known; the choices that bear on it come first.
        seed: rotates the others.
        tried: moves to leave out.
    """
    recipe = recipe_in(incumbent)
    if recipe is None:
        yield from (step for step in _unrolled(incumbent) if step.move not in tried)
        return
    for choice, after in _ordered(_changes(kernel, recipe), limit, seed):
        step = Step(choice, getattr(after, choice), ())
        if step.move not in tried and (made := _edited(kernel, incumbent, recipe, after)):
            yield replace(step, edits=made)


def _ordered(
    changes: Sequence[tuple[str, Recipe]], limit: Limit | None, seed: int
) -> Iterator[tuple[str, Recipe]]:
    """Yield one change of every choice, then a second of each, and so on."""
    first = list(_FIRST[limit]) if limit else []
    rest = [name for name in CHOICES if name not in first]
    turn = seed % len(rest)
    order = [*first, *rest[turn:], *rest[:turn]]
    columns = [[change for change in changes if change[0] == name] for name in order]
    for row in zip_longest(*columns):
        yield from (change for change in row if change is not None)


@lru_cache(maxsize=64)
def _changes(kernel: str, recipe: Recipe) -> tuple[tuple[str, Recipe], ...]:
    """Return the recipes with one other value that make another source."""
    seen = {_body(kernel, recipe)}
    found = []
    for name, other in recipe.neighbours():
        if possible(TASKS[kernel], other) and (body := _body(kernel, other)) not in seen:
            seen.add(body)
            found.append((name, other))
    return tuple(found)


def _body(kernel: str, recipe: Recipe) -> str:
    return source(TASKS[kernel], recipe).removeprefix(recipe.header)


def _edited(kernel: str, incumbent: str, before: Recipe, after: Recipe) -> tuple[Edit, ...]:
    """Return the edits from one recipe to another, or () if the incumbent differs at one."""
    about = incumbent.partition("# Choices: ")[0]
    old, new = (source(TASKS[kernel], recipe, about) for recipe in (before, after))
    made = edits(old, new, _line)
    if len(made) > _MOST_EDITS:
        made = (Edit(old.rstrip("\n"), new.rstrip("\n")),)
    return made if _applies(incumbent, made) else ()


def _applies(text: str, made: tuple[Edit, ...]) -> bool:
    for edit in made:
        if text.count(edit.search) != 1:
            return False
        text = text.replace(edit.search, edit.replace)
    return True


def _line(line: str) -> str:
    """Make every line one to compare: blanks at its begin and empty lines matter in Python."""
    return line.rstrip() or " "


def _unrolled(incumbent: str) -> Iterator[Step]:
    """Yield one change for all loops of a source that are written alike, by factor."""
    loops = sorted({match.group(): match for match in _LOOP.finditer(incumbent)}.items())
    for factor in _UNROLLS:
        for line, match in loops:
            count = int(match[2])
            after = f"{match[1]}, unroll={factor}):"
            if after != line and count % factor == 0:
                sites = incumbent.count(line)
                yield Step("unroll", f"{factor} of {count}", (Edit(line, after),), sites)
