"""What a statement may refer to, and the loops it stands in."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from typing import Generic, TypeVar

from sim.npu.diagnostics import IllegalError
from sim.npu.program import Axis, Memory, Placement, Tensor
from sim.npu.signature import Signature
from sim.npu.syntax import Span, Word
from sim.npu.toolchain import Toolchain

T = TypeVar("T")


class Names(Generic[T]):
    """One name space: what is defined so far."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[T, int]] = {}

    def define(self, word: Word, item: T) -> None:
        """Add a name.

        Raises:
            IllegalError: it is taken.
        """
        if word.text in self._items:
            line = self._items[word.text][1]
            message = f"`{word.text}` is already defined at line {line}; a name is defined once"
            raise IllegalError("E-REDEFINED", word.at, message)
        self._items[word.text] = item, word.at.line

    def find(self, word: Word) -> T:
        """Look a name up.

        Raises:
            IllegalError: it is not defined here.
        """
        if word.text not in self._items:
            near = get_close_matches(word.text, self._items, n=1)
            hint = f"; did you mean `{near[0]}`" if near else ""
            raise IllegalError("E-NAME", word.at, f"`{word.text}` is not defined{hint}")
        return self._items[word.text][0]

    def items(self) -> tuple[T, ...]:
        """Everything defined, in the order of the source."""
        return tuple(item for item, _ in self._items.values())


@dataclass(frozen=True)
class Frame:
    """A loop around a statement."""

    number: int
    """Tells the loops of a program apart."""
    axis: Axis
    count: int
    stored: frozenset[str]
    """Names of the HBM tensors that its body stores to."""


Path = tuple[Frame, ...]
"""The loops around a statement, outermost first."""


@dataclass(frozen=True)
class Known:
    """A tensor, and what has been said of it so far."""

    tensor: Tensor
    partial_in: frozenset[int] = frozenset()
    """Numbers of the loops in which it is still a part of a sum."""


@dataclass
class Scope:
    """The state of the checker between two statements."""

    signature: Signature
    toolchain: Toolchain
    axes: Names[Axis] = field(default_factory=Names)
    placements: Names[Placement] = field(default_factory=Names)
    tensors: Names[Known] = field(default_factory=Names)
    stored: set[str] = field(default_factory=set)
    """HBM tensors stored to."""
    scratch_bytes: int = 0
    n_loops: int = 0
    n_commands: int = 0
    """After unrolling."""

    def count_command(self, path: Path, at: Span) -> None:
        """Take note of a statement.

        Raises:
            IllegalError: the program is too long.
        """
        self.n_commands += prod(frame.count for frame in path)
        limit = self.toolchain.limits.max_commands
        if self.n_commands > limit:
            message = f"{self.n_commands} commands up to here; a program has at most {limit}"
            raise IllegalError("E-COMMANDS", at, message)

    def use(self, word: Word, memory: Memory, path: Path) -> Tensor:
        """Look up a tensor that a statement reads on chip.

        Raises:
            IllegalError: no such tensor, in another memory, incomplete, or not in even tiles.
        """
        known = self.tensors.find(word)
        tensor = known.tensor
        if tensor.memory != memory:
            how = "load it" if tensor.memory == "hbm" else "stage it with a pass"
            message = f"`{word.text}` is in {tensor.memory}, not in {memory}; {how}"
            raise IllegalError("E-VRF-OPERAND", word.at, message)
        for frame in path:
            if frame.number in known.partial_in:
                message = f"`{word.text}` is complete only after the loop over {frame.axis.name}"
                raise IllegalError("E-LOOP-PARTIAL", word.at, message)
        tile(tensor, path, word.at)
        return tensor


def tile(tensor: Tensor, path: Path, at: Span) -> tuple[int, ...]:
    """Return the elements along each axis that one iteration handles in one slice.

    Raises:
        IllegalError: a loop does not cut the tensor into equal tiles.
    """
    return tuple(
        _tile(axis, n, path, at) for axis, n in zip(tensor.axes, tensor.share, strict=True)
    )


def _tile(axis: Axis, n: int, path: Path, at: Span) -> int:
    for frame in path:
        if frame.axis.name != axis.root:
            continue
        if n % frame.count:
            if axis.parent:
                raise cut_block(axis, f"{frame.count} tiles", at)
            message = f"{n} of {axis.name} in a slice is not divisible into {frame.count} tiles"
            raise IllegalError("E-TILE-DIVIDES", at, message)
        n //= frame.count
    return n


def cut_block(axis: Axis, what: str, at: Span) -> IllegalError:
    """Make the error of cutting through blocks."""
    message = f"{what} of {axis.parent} cut a block of 16 that {axis.name} counts"
    return IllegalError("E-TILE-BLOCK", at, message)
