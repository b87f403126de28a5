"""One pass of the tensor unit, stage by stage, on a whole tensor.

Each stage has a node of its own, without rounding in between: fused and separate passes share
values as far as their roundings agree.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, assert_never

import numpy as np

from sim.npu.dtypes import Data, Floats, dense, holds, in_pieces, round_to
from sim.npu.faults import flit_elements, live_parts, pass_faults, placed, placement_of
from sim.npu.memo import Launch, Node, digest
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
from sim.npu.values import Reading, alu, contract, flit_major, garbage, roll, sum_over


def run_pass(command: Pass, chip: Mapping[str, Node]) -> Node:
    """Return what a pass commits, given the tensors on chip by name."""
    stream = _Stream(command, chip)
    stream.fetch()
    for stage in command.stages:
        stream.apply(stage)
    stream.commit()
    return stream.node


class _Stream:
    """What flows through the unit."""

    def __init__(self, command: Pass, chip: Mapping[str, Node]) -> None:
        self._command, self._chip = command, chip
        self._placement, self._faults = placed(command), pass_faults(command)
        self._axes: tuple[Axis, ...] = command.source.axes
        self.node = chip[command.source.name]
        self._entered: Node | None = None
        """What entered the vector engine, once it did."""

    def fetch(self) -> None:
        """Exchange the halves of the rolled axis, if there is one."""
        name = self._command.roll
        if name and "sub roll" not in self._faults:
            axis = self._position(name)
            self._become(
                ("roll", axis), self.node.dtype, lambda _, stream: roll(dense(stream), axis)
            )

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

    def commit(self) -> None:
        """Round to the output's format; the vector register file takes f32."""
        output = self._command.output
        dtype, n = output.dtype, output.pieces
        if output.memory == "trf" and dtype == "f8e4m3":
            self._become(("pieces", n), "f32", lambda _, stream: in_pieces(dense(stream), n))
        elif output.memory != "vrf" and not holds(dtype, self.node.dtype):
            self._become(("round", dtype), dtype, lambda _, stream: round_to(dense(stream), dtype))
        if "stale operand" in self._faults:
            self._spoil()

    def _gather_flits(self, name: str) -> None:
        axis = self._position(name)
        n_parts = placement_of(self._command.source).n_slice_parts(name)
        n_flit = flit_elements(self._command.output)
        self._become(
            ("flits", axis, n_parts, n_flit),
            self.node.dtype,
            lambda _, stream: flit_major(dense(stream), axis, n_parts, n_flit),
        )

    def _contract(self, stage: Contract) -> None:
        tensors = [t for t in (stage.operand, stage.scale) if t]
        readings = [self._reading(tensor) for tensor in tensors]

        def compute(_: Launch, stream: Data, *operands: Data) -> Floats:
            operand, *scale = zip(readings, operands, strict=True)
            return contract(stream, operand, scale[0] if scale else None)

        nodes = [self._chip[tensor.name] for tensor in tensors]
        self._become(("contract", *readings), "f32", compute, *nodes)
        self._axes = self._axes[: len(self._axes) - len(stage.operand.axes)]

    def _alu(self, stage: Alu) -> None:
        self._entered = self._entered or self.node
        nodes = [self._operand(operand) for operand in stage.operands]
        readings = [self._reading(operand) for operand in stage.operands]

        def compute(_: Launch, stream: Data, *operands: Data) -> Floats:
            read = zip(readings, map(dense, operands), strict=True)
            return alu(stage.function, dense(stream), list(read))

        self._become((stage.function, *readings), "f32", compute, *nodes)

    def _sum_over(self, name: str) -> None:
        axis = self._position(name)
        self._become(("sum", axis), "f32", lambda _, stream: sum_over(dense(stream), axis))
        self._axes = self._axes[:axis] + self._axes[axis + 1 :]

    def _spoil(self) -> None:
        """Put what was in the registers before in the place of the value."""
        key, output = digest("stale", self.node.key), self._command.output

        def compute(launch: Launch, replaced: Floats) -> Floats:
            noise = garbage(key, launch.seed, replaced.size).view(np.int8)
            return round_to(noise.reshape(output.shape) / np.float32(64), output.dtype)

        self.node = Node(key, output.dtype, compute, (self.node,))

    def _become(
        self, operation: object, dtype: DType, compute: Callable[..., Any], *operands: Node
    ) -> None:
        inputs = (self.node, *operands)
        key = digest(operation, *(node.key for node in inputs))
        self.node = Node(key, dtype, compute, inputs)

    def _operand(self, operand: Tensor | float | Literal["self"]) -> Node:
        if isinstance(operand, Tensor):
            return self._chip[operand.name]
        if operand == "self":
            return self._entered or self.node
        constant = np.float32(operand)
        return Node(digest("constant", float(constant)), "f32", lambda _: np.asarray(constant))

    def _reading(self, operand: Tensor | float | Literal["self"]) -> Reading:
        if isinstance(operand, Tensor):
            axes = tuple(self._position(axis.name, axis.parent) for axis in operand.axes)
            roots = {axis.root: i for i, axis in enumerate(self._axes)}
            parts = live_parts(operand, self._placement)
            return Reading(axes, tuple((roots.get(axis), live) for axis, live in parts.items()))
        return Reading(tuple(range(len(self._axes))) if operand == "self" else ())

    def _position(self, *names: str) -> int:
        return next(i for i, axis in enumerate(self._axes) if axis.name in names)
