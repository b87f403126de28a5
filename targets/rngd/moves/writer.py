"""Writes the source of one kernel: statements, axes, and the tensor operations that they use."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from targets.rngd.moves.chain import Chain, Step, operation_text
from targets.rngd.task import Parameter, Task

Axes = tuple[str, ...]
Width = Literal["bf16", "f32"]

_IMPORTS: Final = """\
from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation
"""


@dataclass(frozen=True)
class Typed:
    """Element type and axes of a tensor."""

    dtype: str
    axes: Axes
    stored: bool = False
    """Not in the chip's own memory yet, as parameters are not."""

    @property
    def annotation(self) -> str:
        """As the language spells it."""
        return f"tcl.Tensor[tcl.{self.dtype}, [{', '.join(self.axes)}]]"


@dataclass
class Writer:
    """A kernel in the making; every method that adds a tensor returns its name."""

    task: Task
    """Whose signature the kernel has."""
    fused: bool
    """A chain becomes one tensor operation, not one for each of its steps."""
    width: Width
    """Element type of vectors between operations."""
    loads: bool
    """Vectors that several operations read are loaded once, by hand."""
    sizes: dict[str, int] = field(init=False)
    """Of every axis; those of the signature to begin with."""
    tensors: dict[str, Typed] = field(init=False)
    """By name; the parameters to begin with."""
    _lines: list[str] = field(default_factory=list)
    _axes: list[str] = field(default_factory=list)
    _operations: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name by kind and text after the name."""
    _indent: str = "    "

    def __post_init__(self) -> None:
        self.sizes = dict(self.task.bindings)
        self.tensors = {p.name: Typed(p.dtype, p.axes, stored=True) for p in self.task.parameters}

    def axis(self, name: str, size: int) -> str:
        """Declare an axis, once."""
        if name not in self.sizes:
            self.sizes[name] = size
            self._axes.append(f"    {name} = tcl.Axis({size})\n")
        return name

    def line(self, text: str) -> None:
        """Add a statement."""
        self._lines.append(f"{self._indent}{text}\n")

    def let(self, name: str, typed: Typed, value: str, *, mutable: bool = False) -> str:
        """Add a tensor whose type its annotation says."""
        self.tensors[name] = typed
        annotation = typed.annotation
        self.line(f"{name}: {_mutable(annotation) if mutable else annotation} = {value}")
        return name

    def reshape(self, name: str, source: str, axes: Axes) -> str:
        """Add ``source`` with other axes of the same volume; itself if it has them already."""
        if self.tensors[source].axes == axes:
            return source
        self.tensors[name] = replace(self.tensors[source], axes=axes)
        self.line(f"{name} = tcl.reshape({source}, to=[{', '.join(axes)}])")
        return name

    def transmute(self, name: str, source: str, dtype: str, last: str) -> str:
        """Add the bits of ``source`` as another type, with ``last`` as its last axis."""
        typed = self.tensors[source]
        other = replace(typed, dtype=dtype, axes=(*typed.axes[:-1], last))
        return self.let(name, other, f"tcl.transmute({source})")

    def part(self, name: str, source: str, axis: str, first: int, to: str) -> str:
        """Add the ``to`` elements of an axis from the ``first``."""
        typed = self.tensors[source]
        axes = tuple(to if a == axis else a for a in typed.axes)
        self.tensors[name] = replace(typed, axes=axes)
        self.line(f"{name} = tcl.slice({source}, {axis}, {first}, output_axis={to})")
        return name

    def element(self, name: str, source: str, axis: str, at: int) -> str:
        """Add one element of an axis, without the axis."""
        typed = self.tensors[source]
        other = replace(typed, axes=tuple(a for a in typed.axes if a != axis))
        return self.let(name, other, f"tcl.slice({source}, {axis}, {at})")

    def shared(self, source: str) -> str:
        """Return ``source`` for several operations to read: loaded once, if loads are by hand."""
        return self.load(source) if self.loads else source

    def load(self, source: str) -> str:
        """Add ``source`` in the chip's own memory."""
        name = f"{source}_loaded"
        self.tensors[name] = replace(self.tensors[source], stored=False)
        self.line(f"{name} = tcl.load({source})")
        return name

    def gather(self, name: str, table: str, indices: str, axis: str) -> str:
        """Add the rows of a table at ``indices``."""
        typed = self.tensors[table]
        at = typed.axes.index(axis)
        axes = (*typed.axes[:at], *self.tensors[indices].axes, *typed.axes[at + 1 :])
        self.tensors[name] = Typed(typed.dtype, axes)
        self.line(f"{name} = tcl.gather({table}, {indices}, {axis})")
        return name

    @contextmanager
    def loop(self, count: int, unroll: int) -> Iterator[None]:
        """Put the statements that follow into a hardware loop over ``i``."""
        tail = f", unroll={unroll}" if unroll > 1 else ""
        self.line(f"for i in tcl.range(0, {count}{tail}):")
        self._indent = "        "
        yield
        self._indent = "    "

    def turn(self, name: str, source: str, axis: str) -> str:
        """Add what ``source`` has at the loop's place of an axis."""
        typed = self.tensors[source]
        self.tensors[name] = replace(typed, axes=tuple(a for a in typed.axes if a != axis))
        self.line(f"{name} = tcl.index_read({source}, i, axis={axis})")
        return name

    def chain(self, name: str, role: str, chain: Chain, width: Width | None = None) -> str:
        """Add what a chain makes of its inputs.

        Args:
            name: of the tensor.
            role: names the tensor operation.
            chain: what to do.
            width: element type of the output; otherwise that of vectors, f32 for a number.
        """
        bits = chain.start == "integers"  # change their meaning on the way: one operation
        if self.fused or bits or len(chain.steps) + (chain.start != "fetch") <= 1:
            return self._operation(name, role, chain, width)
        return self._one_by_one(name, role, chain, width)

    def _one_by_one(self, name: str, role: str, chain: Chain, width: Width | None) -> str:
        """Add one operation for the start and one for each step; in f32 up to the last."""
        values = {"value": chain.inputs[0]}
        if chain.start != "fetch":
            exact: Width = "bf16" if chain.start == "look up" else "f32"
            start = replace(chain, steps=())
            values["value"] = self._operation(f"{name}_0", role, start, exact)
        for at, step in enumerate(chain.steps, 1):
            last = at == len(chain.steps)
            main = values[step.of]
            operand = step.operand
            if isinstance(operand, str):
                operand = values.get(operand, operand)
            single = Chain(
                "fetch", (main,), (Step(step.do, "value" if operand == main else operand),)
            )
            verb = _VERBS.get(step.do, step.do)
            tensor = name if last else f"{name}_{at}"
            values[step.into] = self._operation(tensor, verb, single, width if last else "f32")
        return name

    def _operation(self, name: str, role: str, chain: Chain, width: Width | None) -> str:
        axes = chain.to if chain.start == "contract" else self.tensors[chain.inputs[0]].axes
        left = tuple(axis for axis in axes if axis not in chain.summed)
        width = width or (self.width if left else "f32")
        self.tensors[name] = Typed(width, left)
        arguments = {"to": chain.to, "axes": chain.summed}
        extras = {key: f"[{', '.join(axes)}]" for key, axes in arguments.items() if axes}
        function = self._function(role, chain, width == "bf16", extras)
        self.line(f"{name} = {function}({', '.join([*chain.tensors, *extras.values()])})")
        return name

    def _function(self, role: str, chain: Chain, narrow: bool, extras: Iterable[str]) -> str:
        """Return the name of the tensor operation that does this, defined once."""
        parameters = _parameters(chain)
        text = f"({', '.join([*parameters, *extras])}):\n"
        text += operation_text(chain, narrow, parameters)
        key = ("(tcl.Elementwise)" if self._pairs(chain) else "", text)
        if key not in self._operations:
            taken = self._operations.values()
            names = [role, *(f"{role}_{n}" for n in range(2, len(taken) + 3))]
            self._operations[key] = next(n for n in names if n not in taken)
        return self._operations[key]

    def _pairs(self, chain: Chain) -> bool:
        """Whether the language would take the chain for an interleaving of two tensors."""
        if chain.start == "contract" or len(chain.tensors) != 2 or len(chain.steps) < 2:
            return False
        one, other = (sorted(self.tensors[name].axes) for name in chain.tensors)
        return one == other and not chain.summed

    def source(self, about: str, returned: str) -> str:
        """Return the whole source.

        Args:
            about: comment lines at its top.
            returned: the tensor that the kernel returns.
        """
        operations = "".join(
            f"\n\n@tcl.tensor_operation{kind}\ndef {name}{text}"
            for (kind, text), name in self._operations.items()
        )
        values = ", ".join(f'"{name}": {size}' for name, size in self.task.bindings.items())
        head = f"@tcl.kernel(bindings={{{values}}}, strict=True)\ndef {self.task.name}(\n"
        parameters = "".join(f"    {_declared(p)},\n" for p in self.task.parameters)
        arrow = f") -> {', '.join(_annotation(p) for p in self.task.results)}:\n"
        body = "".join([*self._axes, *self._lines, f"    return {returned}\n"])
        return f"{about}{_IMPORTS}{operations}\n\n{head}{parameters}{arrow}{body}"


def _annotation(parameter: Parameter) -> str:
    return Typed(parameter.dtype, parameter.axes).annotation


def _declared(parameter: Parameter) -> str:
    annotation = _annotation(parameter)
    return f"{parameter.name}: {_mutable(annotation) if parameter.mutable else annotation}"


def _mutable(annotation: str) -> str:
    return annotation.replace("tcl.Tensor", "tcl.MutTensor", 1)


_VERBS: Final[Mapping[str, str]] = {
    "mulf": "multiply",
    "addf": "add",
    "subf": "subtract",
    "sum": "total",
    "sqrt": "root",
}
"""Names of tensor operations of a single step."""


def _parameters(chain: Chain) -> list[str]:
    """Name a chain's tensors for its definition."""
    main = {"look up": ["codes", "table"], "contract": ["weights", "x"]}
    first = main.get(chain.start, ["x"])[: len(chain.inputs)]
    others = len(chain.tensors) - len(first)
    return [*first, *"abcdefgh"[:others]]
