"""How much lives in the chip's SRAM at once: the evaluator does not ask."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from targets.profiler.schedule import NOOP, Schedule
from targets.rngd.dtypes import n_bytes
from targets.rngd.ir.syntax import Assign, Contract, Function, Fused
from targets.rngd.shapes import axis_sizes, types

SRAM_BYTES: Final = 256 << 20
"""Of one chip with all its processing elements."""
_WIDEST: Final = "f32"
_SUFFIXES: Final = ("_updated", "_intermediate")
"""What the compiler appends to the names of tensors that it makes of others."""


class Peak(NamedTuple):
    """The fullest moment of a schedule."""

    n_bytes: int
    at: int
    """Cycles from the begin."""


def tensor_bytes(function: Function) -> dict[str, int]:
    """Return the bytes of every tensor of a kernel by its name."""
    sizes = axis_sizes(function)
    return {
        name: n_bytes(kind.dtype, (sizes[axis] for axis in kind.axes))
        for name, kind in types(function).items()
    }


def inner_bytes(function: Function) -> dict[str, int]:
    """Return the most bytes of what lies between two passes of a fused operation, by its result.

    The compiler may split one, and gives no name to what the first part leaves for the second.
    """
    sizes, kinds = axis_sizes(function), types(function)
    found: dict[str, int] = {}
    for statement in function.statements():
        if isinstance(statement, Assign) and isinstance(fused := statement.operation, Fused):
            kept = [each.kept for each in fused.instructions if isinstance(each, Contract)]
            read = [kinds[read.name].axes for read in fused.reads if read.name in kinds]
            axes = {axis for group in (*(kept or read), fused.written.axes) for axis in group}
            inner = n_bytes(_WIDEST, (sizes[axis] for axis in sorted(axes) if axis in sizes))
            found |= {output.name: inner for output in statement.outputs}
    return found


def peak(function: Function, schedule: Schedule) -> Peak:
    """Return the most bytes of SRAM that a schedule holds at once.

    The dump's own sizes are placeholders: they come from the kernel's types. Tensors that only an
    operation without work lies between are one piece of memory, as large as the largest of them,
    from the first begin to the last end.
    """
    changes: dict[int, int] = defaultdict(int)
    for piece in _pieces(schedule, function):
        changes[piece.begin] += piece.n_bytes
        changes[piece.end] -= piece.n_bytes
    fullest, held = Peak(0, 0), 0
    for at in sorted(changes):
        held += changes[at]
        fullest = max(fullest, Peak(held, at), key=lambda p: p.n_bytes)
    return fullest


class _Piece(NamedTuple):
    n_bytes: int
    begin: int
    end: int


def _pieces(schedule: Schedule, function: Function) -> Iterator[_Piece]:
    tensors = {tensor.number: tensor for tensor in schedule.tensors if tensor.spans}
    groups = _Groups(tensors)
    consumers: dict[int, list[str]] = defaultdict(list)
    for operation in schedule.operations:
        inputs, outputs = operation.inputs, operation.outputs
        if operation.contexts == (NOOP,):
            groups.join([i for i in (*inputs, *outputs) if i in tensors])
        for i in inputs:
            consumers[i] += [tensors[o].name for o in outputs if o in tensors]
    by_name, inner = tensor_bytes(function), inner_bytes(function)
    largest = max(by_name.values(), default=0)
    for members in groups.all():
        known = [_known(tensors[i].name, by_name) for i in members]
        found = [size for size in known if size is not None] or [
            inner.get(name, largest) for i in members for name in consumers[i]
        ]
        spans = [span for i in members for span in tensors[i].spans]
        begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
        yield _Piece(max(found, default=largest), begin, end)


def _known(name: str, by_name: Mapping[str, int]) -> int | None:
    """Return a tensor's bytes, the most that its name can mean; None if it says nothing."""
    stems = (name.removesuffix(suffix) for suffix in ("", *_SUFFIXES))
    return max((by_name[stem] for stem in stems if stem in by_name), default=None)


class _Groups:
    """Sets of tensors that are one piece of memory."""

    def __init__(self, members: Iterable[int]) -> None:
        self._root = {member: member for member in members}

    def _find(self, member: int) -> int:
        while self._root[member] != member:
            self._root[member] = self._root[self._root[member]]
            member = self._root[member]
        return member

    def join(self, members: list[int]) -> None:
        for member in members[1:]:
            self._root[self._find(member)] = self._find(members[0])

    def all(self) -> Iterable[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for member in self._root:
            found[self._find(member)].append(member)
        return found.values()
