"""Rules of on-chip memory: what is live at once in a slice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from sim.npu.diagnostics import Code, IllegalError
from sim.npu.program import Load, Loop, Memory, Pass, Position, Program, Statement, Store, Tensor
from sim.npu.syntax import Span
from sim.npu.toolchain import Limits


@dataclass
class _Range:
    """A loop as statement numbers, both ends included."""

    loop: Loop
    begin: int
    end: int = 0


@dataclass(frozen=True)
class _Moment:
    """A statement that reads or writes, in the loops around it."""

    number: int
    loops: tuple[_Range, ...]

    def begin(self, depth: int) -> int:
        """First statement of the loop at a depth, or this one where it is not that deep."""
        return self.loops[depth].begin if depth < len(self.loops) else self.number

    def end(self, depth: int) -> int:
        """Last statement of the loop at a depth, or this one."""
        return self.loops[depth].end if depth < len(self.loops) else self.number


@dataclass
class _Life:
    """A tensor on chip: the moments that touch it, the one that writes it first."""

    tensor: Tensor
    moments: list[_Moment]

    @property
    def scope(self) -> tuple[_Range, ...]:
        """Loops that hold all its moments."""
        common: tuple[_Range, ...] = self.moments[0].loops
        for moment in self.moments[1:]:
            n = sum(a is b for a, b in zip(common, moment.loops, strict=False))
            common = common[:n]
        return common

    @property
    def n_bytes(self) -> int:
        """Memory in a slice: whole, or the tiles that the innermost loop around it keeps."""
        size = self.tensor.slice_bytes
        for inside in self.scope:
            if inside.loop.axis in {axis.root for axis in self.tensor.axes}:
                size //= inside.loop.count
        return size * (self.scope[-1].loop.buffers if self.scope else 1)


@dataclass
class _Walk:
    """Numbers the statements of a program and collects the lives of its tensors."""

    lives: dict[str, _Life] = field(default_factory=dict)
    positions: list[Position] = field(default_factory=list)

    def run(self, body: tuple[Statement, ...], loops: tuple[_Range, ...] = ()) -> None:
        for statement in body:
            number = len(self.positions)
            self.positions.append(statement.position)
            moment = _Moment(number, loops)
            match statement:
                case Loop():
                    inside = _Range(statement, number)
                    self.run(statement.body, (*loops, inside))
                    inside.end = len(self.positions) - 1
                case Load():
                    self._touch(moment, statement.outputs)
                case Store():
                    self._touch(moment, (statement.source,))
                case Pass():
                    read = (statement.source, *statement.operands)
                    self._touch(moment, (*read, statement.output))

    def _touch(self, moment: _Moment, tensors: tuple[Tensor, ...]) -> None:
        for tensor in tensors:
            self.lives.setdefault(tensor.name, _Life(tensor, [])).moments.append(moment)


_WORDS: Final[Mapping[Memory, tuple[Code, str]]] = {
    "dm": ("E-DM-SIZE", "live at this statement"),
    "vrf": ("E-VRF-SIZE", "of vector operands"),
    "trf": ("E-TRF-SIZE", "of contraction operands"),
}


def check_memory(program: Program, limits: Limits) -> None:
    """Check that what is live at once fits a slice.

    A tensor lives from the statement that writes it to the last one that reads it; one that
    crosses the border of a loop lives through all iterations of it.

    Raises:
        IllegalError: at the first statement where it does not.
    """
    walk = _Walk()
    walk.run(program.body)
    sizes: Mapping[Memory, int] = {
        "dm": limits.dm_bytes,
        "vrf": limits.vrf_bytes,
        "trf": limits.trf_bytes,
    }
    over = []
    for memory, limit in sizes.items():
        live = _live_bytes(walk, memory)
        over += [(i, memory, n) for i, n in enumerate(live) if n > limit][:1]
    if over:
        i, memory, n = min(over)
        code, words = _WORDS[memory]
        at = walk.positions[i]
        message = f"{n} bytes {words}; a slice has {sizes[memory]}"
        raise IllegalError(code, Span(0, 0, at.line, at.column), message)


def taken_bytes(program: Program) -> dict[str, int]:
    """Return the bytes of a slice that each tensor takes; of one tiled by a loop, its tiles."""
    walk = _Walk()
    walk.run(program.body)
    return {name: life.n_bytes for name, life in walk.lives.items() if life.tensor.placement}


def _live_bytes(walk: _Walk, memory: Memory) -> list[int]:
    """Return the bytes that are live at each statement."""
    change = [0] * (len(walk.positions) + 1)
    for life in walk.lives.values():
        if life.tensor.memory == memory:
            depth, n = len(life.scope), life.n_bytes
            change[life.moments[0].begin(depth)] += n
            change[max(moment.end(depth) for moment in life.moments) + 1] -= n
    return list(accumulate(change[:-1]))
