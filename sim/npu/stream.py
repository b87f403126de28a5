"""One pass of the tensor unit, stage by stage, on a whole tensor.

A value's key says how it came about: operations, roundings and inputs, but neither placement nor
tiles, buffers, lanes or order. Each stage has a key, so fused and separate passes share values.
"""

from collections.abc import Callable, Mapping
from typing import Literal, assert_never

import numpy as np

from sim.npu.dtypes import Floats, dense, holds, in_pieces, round_to
from sim.npu.faults import flit_elements, live_parts, pass_faults, placed, placement_of
from sim.npu.memo import Memo, digest
from sim.npu.program import (
    Alu,
    Axis,
    Contract,
    DType,
    Lookup,
    Pass,
    Reduce,
    Stage,
    Sum,
    Switch,
    Tensor,
)
from sim.npu.values import (
    Live,
    Operand,
    Value,
    alu,
    contract,
    flit_major,
    garbage,
    roll,
    sum_over,
)


def run_pass(command: Pass, chip: Mapping[str, Value], memo: Memo, seed: int) -> Value:
    """Return what a pass commits.

    Args:
        command: the pass.
        chip: tensors on chip by name.
        memo: known values; gets the new ones.
        seed: of what a faulty pass leaves behind.
    """
    stream = _Stream(command, chip, memo)
    stream.fetch()
    for stage in command.stages:
        stream.apply(stage)
    stream.commit()
    if "stale operand" in pass_faults(command):
        stream.spoil(seed)
    return stream.value


class _Stream:
    """The value that flows through the unit."""

    def __init__(self, command: Pass, chip: Mapping[str, Value], memo: Memo) -> None:
        self._command, self._chip, self._memo = command, chip, memo
        self._placement, self._faults = placed(command), pass_faults(command)
        self._axes: tuple[Axis, ...] = command.source.axes
        self.value = chip[command.source.name]
        self._entered: Value | None = None
        """What entered the vector engine, once it did."""

    def fetch(self) -> None:
        """Exchange the halves of the rolled axis, if there is one."""
        name = self._command.roll
        if name and "sub roll" not in self._faults:
            axis, value = self._position(name), self.value
            self._become(("roll", axis), value.dtype, lambda: roll(dense(value.data), axis))

    def apply(self, stage: Stage) -> None:
        """Run one stage."""
        match stage:
            case Switch():
                if "packet-major" in self._faults:
                    self._gather_flits(stage.axis)
            case Contract():
                self._contract(stage)
            case Alu():
                if "unchained" not in self._faults:
                    self._alu(stage)
            case Sum():
                self._sum_over(stage.axis)
            case Lookup() | Reduce():
                pass  # a table is exact; whole tensors have no partial sums
            case _:
                assert_never(stage)

    def _gather_flits(self, name: str) -> None:
        """Put the parts of an axis together flit by flit."""
        axis, value = self._position(name), self.value
        n_parts = placement_of(self._command.source).n_slice_parts(name)
        n_flit = flit_elements(self._command.output)
        self._become(
            ("flits", axis, n_parts, n_flit),
            value.dtype,
            lambda: flit_major(dense(value.data), axis, n_parts, n_flit),
        )

    def _contract(self, stage: Contract) -> None:
        """Sum over the operand's axes of stream times operand."""
        stream = self.value.data
        n_rows = len(self._axes) - len(stage.operand.axes)
        operand = self._operand(stage.operand)
        scale = self._operand(stage.scale) if stage.scale else None
        self._become(
            ("contract", n_rows, operand.key, scale and scale.key),
            "f32",
            lambda: contract(stream, n_rows, operand, scale),
        )
        self._axes = self._axes[:n_rows]

    def _alu(self, stage: Alu) -> None:
        """Apply one arithmetic unit."""
        self._entered = self._entered or self.value
        stream = self.value.data
        operands = [self._operand(operand) for operand in stage.operands]
        self._become(
            (stage.function, *(operand.key for operand in operands)),
            "f32",
            lambda: alu(stage.function, dense(stream), operands),
        )

    def _sum_over(self, name: str) -> None:
        """Sum over an axis."""
        axis, stream = self._position(name), self.value.data
        self._become(("sum", axis), "f32", lambda: sum_over(dense(stream), axis))
        self._axes = self._axes[:axis] + self._axes[axis + 1 :]

    def commit(self) -> None:
        """Round to the output's format; the vector register file takes f32."""
        output, value = self._command.output, self.value
        if output.memory == "trf" and output.dtype == "f8e4m3":
            n = output.pieces
            self._become(("pieces", n), "f32", lambda: in_pieces(dense(value.data), n))
        elif output.memory != "vrf" and not holds(output.dtype, value.dtype):
            self._become(
                ("round", output.dtype),
                output.dtype,
                lambda: round_to(dense(value.data), output.dtype),
            )

    def spoil(self, seed: int) -> None:
        """Put what was in the registers before in the place of the value."""
        key = digest("stale", seed, self.value.key)
        output = self._command.output
        values = round_to(garbage(key, output.shape), output.dtype)
        self.value = Value(key, values, output.dtype)

    def _become(self, operation: object, dtype: DType, compute: Callable[[], Floats]) -> None:
        key = digest(operation, self.value.key)
        values = self._memo.get(key)
        if values is None:
            values = compute()
            self._memo.put(key, values)
        self.value = Value(key, values, dtype)

    def _operand(self, read: Tensor | float | Literal["self"]) -> Operand:
        if isinstance(read, Tensor):
            axes = tuple(self._position(axis.name, axis.parent) for axis in read.axes)
            return Operand(self._chip[read.name], axes, self._live(read))
        if read == "self":
            value = self._entered or self.value
            return Operand(value, tuple(range(len(self._axes))))
        constant = np.float32(read)
        return Operand(Value(digest("constant", float(constant)), np.asarray(constant), "f32"))

    def _live(self, operand: Tensor) -> Live:
        roots = {axis.root: i for i, axis in enumerate(self._axes)}
        parts = live_parts(operand, self._placement)
        return tuple((roots.get(axis), live) for axis, live in parts.items())

    def _position(self, *names: str) -> int:
        return next(i for i, axis in enumerate(self._axes) if axis.name in names)
