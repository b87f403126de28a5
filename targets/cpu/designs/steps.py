"""Small steps: one changed parameter at the top of a source."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Final, NamedTuple

from targets.cpu.designs.design import Limit

_VALUES: Final[Mapping[str, tuple[int, ...]]] = {
    "ROWS": (1, 2, 4, 8, 16),
    "PREFETCH": (0, 256, 512, 1024, 2048),
    "LOCALITY": (0, 2, 3),
    "APART": (0, 1),
    "STAGGER": (0, 1),
    "LANES": (4, 8, 16),
    "ACC": (1, 2, 4, 8, 16, 32),
    "TILE": (16, 32, 64, 128, 256),
    "UNROLL": (1, 2, 3, 4),
    "ERF_POLYNOMIAL": (0, 1),
}
_FIRST: Final[Mapping[Limit, tuple[str, ...]]] = {
    "decoding": ("LANES", "ROWS", "ACC", "TILE"),
    "sums": ("ROWS", "ACC", "LANES", "ERF_POLYNOMIAL"),
    "memory": ("PREFETCH", "STAGGER", "LOCALITY", "ROWS", "TILE"),
}
"""Parameters to change first, by what the best version waits for."""
_DEFINE: Final = re.compile(r"^#define (\w+) (\d+)\n", re.MULTILINE)


class Step(NamedTuple):
    """A parameter's other value."""

    knob: str
    before: int
    after: int

    @property
    def move(self) -> str:
        """Name of the move."""
        return f"step:{self.knob}={self.after}"


def knobs_of(source: str) -> dict[str, int]:
    """Read the parameters that ``source`` defines; one defined twice is none."""
    found = _DEFINE.findall(source)
    names = [name for name, _ in found]
    return {name: int(v) for name, v in found if name in _VALUES and names.count(name) == 1}


def steps(source: str, limit: Limit | None, seed: int) -> Iterator[Step]:
    """Yield every step from ``source``: of each parameter the nearest value, then the next, ...

    Args:
        source: the best version.
        limit: what it waits for, if known; the parameters that bear on it come first.
        seed: rotates the others.
    """
    knobs = knobs_of(source)
    for name in _idle(knobs):
        knobs.pop(name, None)
    first = [name for name in _FIRST.get(limit, ()) if name in knobs] if limit else []
    rest = sorted(knobs.keys() - set(first))
    turn = seed % len(rest) if rest else 0
    order = [*first, *rest[turn:], *rest[:turn]]
    columns = [_nearest(name, knobs[name]) for name in order]
    for row in zip_longest(*columns):
        yield from (step for step in row if step is not None)


def _idle(knobs: Mapping[str, int]) -> Iterator[str]:
    """Yield parameters without an effect beside the others: distances without a block, ..."""
    if knobs.get("ROWS") == 1:
        yield from ("APART", "STAGGER")
    elif knobs.get("APART") == 0:
        yield "STAGGER"
    if knobs.get("PREFETCH") == 0:
        yield "LOCALITY"


def _nearest(name: str, value: int) -> list[Step]:
    """Return the other values of a parameter, nearest first, of two equally near the larger one."""
    ladder = _VALUES[name]
    place = min(range(len(ladder)), key=lambda i: abs(ladder[i] - value))
    others = [i for i in range(len(ladder)) if ladder[i] != value]
    others.sort(key=lambda i: (abs(i - place), -i))
    return [Step(name, value, ladder[i]) for i in others]
