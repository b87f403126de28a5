"""Unroll a program into commands: one per statement and tile, and what each waits for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Final, Literal

from sim.npu.faults import placement_of
from sim.npu.program import (
    DType,
    Load,
    Lookup,
    Loop,
    Pass,
    Program,
    Statement,
    Store,
    Switch,
    Tensor,
)

Engine = Literal["dma", "main", "sub"]
ENGINES: Final[tuple[Engine, ...]] = ("dma", "main", "sub")
Path = tuple[int, ...]
"""A loop, by the positions of its ancestors and itself in their bodies."""
Tiles = Mapping[str, tuple[int, int]]
"""(index, count) of the current tile, by the axis that it cuts."""


@dataclass(frozen=True)
class Site:
    """A statement in its loops: what all its commands have in common."""

    statement: Load | Store | Pass
    loops: tuple[Loop, ...]
    """Outermost first."""
    counts: Mapping[str, int]
    """Tiles of the loops, by root axis."""

    @cached_property
    def engine(self) -> Engine:
        """Who runs it."""
        return self.statement.context if isinstance(self.statement, Pass) else "dma"

    @cached_property
    def reads(self) -> tuple[Tensor, ...]:
        """Tensors on chip that it reads."""
        match self.statement:
            case Load():
                return ()
            case Store(source=source):
                return (source,)
            case Pass(source=source, operands=operands):
                return (source, *operands)

    @cached_property
    def writes(self) -> tuple[Tensor, ...]:
        """Tensors on chip that it writes."""
        match self.statement:
            case Load(outputs=outputs):
                return outputs
            case Store():
                return ()
            case Pass(output=output):
                return (output,)

    @cached_property
    def n_clusters(self) -> int:
        """Clusters that run it."""
        return placement_of((*self.writes, *self.reads)[0]).n_clusters

    def share(self, tensor: Tensor) -> tuple[int, ...]:
        """Elements along each axis of a tile of ``tensor`` in one slice."""
        return tuple(
            max(1, n // self.counts.get(a.root, 1))
            for n, a in zip(tensor.share, tensor.axes, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Command:
    """What an engine is told to do once."""

    site: Site
    iterations: tuple[int, ...]
    """Of the site's loops."""
    after: tuple[int, ...]
    """Commands of the same cluster that must be complete; all come earlier."""
    synced: tuple[int, ...]
    """Stores that must be complete in every cluster, a sync after them."""
    table: DType | None
    """Dtype of the codes whose table it loads."""


def expand(program: Program) -> tuple[Command, ...]:
    """Return the commands of ``program`` in the order of its source, loops unrolled."""
    expansion = _Expansion(program)
    expansion.run(program.body, (), {}, ())
    return tuple(expansion.commands)


@dataclass
class _Buffer:
    """Who wrote and who reads the tiles of a tensor on chip."""

    grid: tuple[tuple[str, int], ...]
    """(axis, tiles) of the loops that cut the tensor where it is written."""
    home: Path
    """Innermost loop that holds all its uses; () if there is none."""
    writers: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    """By the tile's indices in `grid`."""
    readers: dict[int, list[int]] = field(default_factory=dict)
    """By the iteration of `home`, counted over all its runs."""

    def overlapping(self, tiles: Tiles) -> Iterable[int]:
        """Return the writers of every tile that ``tiles`` touches."""
        ranges = []
        for axis, count in self.grid:
            i, n = tiles.get(axis, (0, 1))
            ranges.append(range(i * count // n, -(-(i + 1) * count // n)))
        return chain.from_iterable(self.writers[key] for key in product(*ranges))


class _Expansion:
    """The commands so far and the state that later ones depend on."""

    def __init__(self, program: Program) -> None:
        self.commands: list[Command] = []
        self._roots = {a.name: a.root for a in program.axes}
        self._homes = _homes(program.body)
        self._sites: dict[Path, Site] = {}
        self._buffers: dict[str, _Buffer] = {}
        self._iterations: dict[Path, int] = {}
        self._loads: dict[str, list[int]] = {}
        self._stores: dict[str, list[int]] = {}
        self._table: DType | None = None

    def run(
        self, body: tuple[Statement, ...], path: Path, tiles: Tiles, loops: tuple[Loop, ...]
    ) -> None:
        """Emit the commands of ``body``, which stands in ``loops`` at ``path``."""
        for k, statement in enumerate(body):
            here = (*path, k)
            if isinstance(statement, Loop):
                axis = self._roots[statement.axis]
                for i in range(statement.count):
                    self._iterations[here] = self._iterations.get(here, -1) + 1
                    inner = {**tiles, axis: (i, statement.count)}
                    self.run(statement.body, here, inner, (*loops, statement))
            else:
                if here not in self._sites:
                    counts = {a: n for a, (_, n) in tiles.items()}
                    self._sites[here] = Site(statement, loops, counts)
                self._emit(self._sites[here], tiles)

    def _emit(self, site: Site, tiles: Tiles) -> None:
        index = len(self.commands)
        after: set[int] = set()
        for tensor in site.reads:
            after.update(self._read(tensor, tiles, index))
        for tensor in site.writes:
            after.update(self._write(tensor, site, tiles, index))
        synced = self._touch_hbm(site.statement, index, after)
        table = self._switch_table(site.statement)
        at = tuple(i for i, _ in tiles.values())
        self.commands.append(Command(site, at, tuple(sorted(after)), synced, table))

    def _read(self, tensor: Tensor, tiles: Tiles, index: int) -> Iterable[int]:
        buffer = self._buffers[tensor.name]
        buffer.readers.setdefault(self._iterations.get(buffer.home, 0), []).append(index)
        return buffer.overlapping(tiles)

    def _write(self, tensor: Tensor, site: Site, tiles: Tiles, index: int) -> Iterable[int]:
        """Return the readers of the tile whose place this one takes."""
        if tensor.name not in self._buffers:
            roots = dict.fromkeys(a.root for a in tensor.axes)
            grid = tuple((a, site.counts[a]) for a in roots if a in site.counts)
            self._buffers[tensor.name] = _Buffer(grid, self._homes[tensor.name])
        buffer = self._buffers[tensor.name]
        key = tuple(tiles[axis][0] for axis, _ in buffer.grid)
        buffer.writers.setdefault(key, []).append(index)
        if not buffer.home:
            return ()
        room = site.loops[len(buffer.home) - 1].buffers
        return buffer.readers.get(self._iterations[buffer.home] - room, ())

    def _touch_hbm(
        self, statement: Load | Store | Pass, index: int, after: set[int]
    ) -> tuple[int, ...]:
        """Order loads and stores of the same tensor; return the stores to sync with."""
        if isinstance(statement, Store):
            name = statement.target.tensor.name
            after.update(self._loads.get(name, ()))
            self._stores.setdefault(name, []).append(index)
        if not isinstance(statement, Load):
            return ()
        names = dict.fromkeys(r.tensor.name for r in statement.sources)
        for name in names:
            self._loads.setdefault(name, []).append(index)
        return tuple(chain.from_iterable(self._stores.get(name, ()) for name in names))

    def _switch_table(self, statement: Load | Store | Pass) -> DType | None:
        """Follow the table in the lookup unit; return the one that must be loaded."""
        stages = statement.stages if isinstance(statement, Pass) else ()
        loaded: DType | None = None
        for stage in stages:
            if isinstance(stage, Lookup):
                codes: DType = "f4e2m1" if stage.dtype == "f8e4m3" else "f8e4m3"
                loaded = None if stage.keep and self._table == codes else codes
                self._table = codes
            elif isinstance(stage, Switch):
                self._table = None
        return loaded


def _homes(body: tuple[Statement, ...]) -> dict[str, Path]:
    """Return the innermost loop around all uses of each tensor on chip."""
    homes: dict[str, Path] = {}
    for site, path in _walk(body, ()):
        for tensor in (*site.reads, *site.writes):
            homes[tensor.name] = _common(homes.get(tensor.name, path), path)
    return homes


def _walk(body: tuple[Statement, ...], path: Path) -> Iterator[tuple[Site, Path]]:
    for k, statement in enumerate(body):
        if isinstance(statement, Loop):
            yield from _walk(statement.body, (*path, k))
        else:
            yield Site(statement, (), {}), path


def _common(a: Path, b: Path) -> Path:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]
