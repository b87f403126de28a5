"""Rules of the stages of a pass: each turns the stream before it into the one behind it."""

from dataclasses import replace
from math import inf
from typing import Final, Literal, cast

from sim.npu.check.scope import Path, Scope
from sim.npu.check.stream import (
    Stream,
    check_lies_alike,
    check_one_cluster,
    check_untiled,
    whole,
)
from sim.npu.diagnostics import IllegalError
from sim.npu.program import (
    Alu,
    AluFunction,
    Axis,
    Contract,
    DType,
    Factor,
    Lookup,
    Placement,
    Reduce,
    Stage,
    Sum,
    Switch,
    Tensor,
)
from sim.npu.syntax import (
    AluText,
    AxisStage,
    ContractText,
    LookupText,
    Number,
    PassText,
    StageText,
    SwitchText,
    Word,
    joined,
)

_ORDER: Final = (
    ("lookup",),
    ("switch",),
    ("contract",),
    ("mul",),
    ("fma",),
    ("add", "sub", "max"),
    ("exp", "erf", "rsqrt"),
    ("sum",),
    ("div",),
    ("reduce",),
)
"""The units of the tensor unit, as the data passes them; there are two of ``mul``."""
_RANK: Final = {op: rank for rank, unit in enumerate(_ORDER) for op in unit}
_TABLES: Final = (("f4e2m1", "f8e4m3"), ("f8e4m3", "bf16"))
_MAX_F32: Final = 3.4028235e38


class Stages:
    """Checks the stages of one pass."""

    def __init__(self, text: PassText, path: Path, scope: Scope) -> None:
        self._text = text
        self._path = path
        self._scope = scope

    def check(self, stream: Stream) -> tuple[Stream, tuple[Stage, ...]]:
        """Lead a stream through all stages.

        Raises:
            IllegalError: the first rule that a stage breaks.
        """
        stages = []
        for i, text in enumerate(self._text.stages):
            self._check_order(i)
            stream, stage = self._stage(text, stream)
            stages.append(stage)
        return stream, tuple(stages)

    def _check_order(self, i: int) -> None:
        stages = self._text.stages
        now, *before = (_RANK[_op(stage)] for stage in reversed(stages[max(0, i - 2) : i + 1]))
        units = 2 if _op(stages[i]) == "mul" else 1
        if not before or (before[0] <= now and before.count(now) < units):
            return
        first = stages[i - max(1, before.count(now))]
        order = ", ".join("|".join(unit) for unit in _ORDER).replace("mul", "mul, mul")
        message = f"{_op(stages[i])} after {_op(stages[i - 1])}; the order is {order}, commit"
        clash = joined(first.at, stages[i].at)
        raise IllegalError("E-STAGE-ORDER", stages[i].at, message, clash)

    def _stage(self, text: StageText, stream: Stream) -> tuple[Stream, Stage]:
        match text:
            case LookupText():
                return self._lookup(text, stream)
            case SwitchText():
                return self._switch(text, stream)
            case ContractText():
                return self._contract(text, stream)
            case AluText():
                return self._alu(text, stream)
            case AxisStage("sum"):
                return self._sum(text, stream)
            case AxisStage():
                return self._reduce(text, stream)

    def _lookup(self, text: LookupText, stream: Stream) -> tuple[Stream, Stage]:
        if self._text.context.text == "sub":
            at = joined(self._text.context.at, text.at)
            raise IllegalError("E-LOOKUP-SUB", text.at, "table lookups run on main only", at)
        dtype = cast(DType, text.dtype.text)
        if (stream.dtype, dtype) not in _TABLES:
            message = f"no table from {stream.dtype} to {dtype}"
            never = dtype not in (to for _, to in _TABLES)
            raise IllegalError("E-LOOKUP-DTYPE", text.at, message, text.at if never else None)
        return replace(stream, dtype=dtype), Lookup(dtype, text.keep)

    def _switch(self, text: SwitchText, stream: Stream) -> tuple[Stream, Stage]:
        name = ""
        if text.axis:
            name = self._scope.axes.find(text.axis).name
            axis = next((axis for axis in stream.axes if axis.name == name), None)
            if axis is not None:
                check_one_cluster(axis, stream.placement, text.axis)
                check_untiled("gather", axis, self._path, text.axis)
            if axis is None or stream.placement.n_slice_parts(name) == 1:
                message = f"the slices do not cut {name}; there is nothing to gather"
                raise IllegalError("E-SWITCH-NOTHING", text.at, message)
        elif not any(f.kind == "idle" and f.count > 1 for f in stream.placement.slices):
            message = "no factor is idle; there is nowhere to broadcast to"
            raise IllegalError("E-SWITCH-NOTHING", text.at, message)
        kind: Literal["broadcast", "gather"] = "gather" if name else "broadcast"
        return replace(stream, placement=_switched(stream.placement, name)), Switch(kind, name)

    def _contract(self, text: ContractText, stream: Stream) -> tuple[Stream, Stage]:
        operand = self._scope.use(text.operand, "trf", self._path)
        if operand.dtype != stream.dtype:
            message = f"{stream.dtype} x {operand.dtype}; both sides must be equal"
            raise IllegalError("E-CONTRACT-DTYPE", text.at, message)
        axes = operand.axes
        if not axes or stream.axes[-len(axes) :] != axes:
            have = ", ".join(axis.name for axis in stream.axes)
            message = (
                f"`{operand.name}` has axes [{', '.join(operand.names)}], the last of [{have}]"
            )
            raise IllegalError("E-CONTRACT-AXES", text.operand.at, f"{message} must be these")
        check_lies_alike(operand, stream, text.operand)
        for axis in axes:
            self._check_summed(whole(axis, text.operand), stream, text.operand)
        scale = self._scale(text.scale, axes[-1], stream) if text.scale else None
        return stream.without(axes), Contract(operand, scale)

    def _scale(self, word: Word, contracted: Axis, stream: Stream) -> Tensor:
        scale = self._scope.use(word, "vrf", self._path)
        if not scale.axes or scale.axes[-1].parent != contracted.name:
            message = f"the last axis of `{scale.name}` must count the blocks of {contracted.name}"
            raise IllegalError("E-SCALE-AXES", word.at, message)
        self._check_subset(replace(scale, axes=scale.axes[:-1]), stream.axes, word)
        check_lies_alike(scale, stream, word)
        return scale

    def _alu(self, text: AluText, stream: Stream) -> tuple[Stream, Stage]:
        stream = stream.vector(text.function)
        operands = tuple(self._operand(operand, stream) for operand in text.operands)
        function = text.function.text
        if function == "fma" and not isinstance(operands[1], float):
            message = f"the addend of fma is a constant, not `{text.operands[1].text}`"
            raise IllegalError("E-FMA-ADDEND", text.operands[1].at, message, text.at)
        return stream, Alu(cast(AluFunction, function), operands)

    def _operand(self, text: Word | Number, stream: Stream) -> Tensor | float | Literal["self"]:
        if isinstance(text, Number):
            return _constant(text)
        if text.text == "self":
            lost = [axis for axis in stream.entered or () if axis not in stream.axes]
            if lost:
                message = f"`self` has axis {lost[0].name}, the stream has lost it"
                raise IllegalError("E-PLACE-MATCH", text.at, message)
            return "self"
        tensor = self._scope.use(text, "vrf", self._path)
        self._check_subset(tensor, stream.axes, text)
        check_lies_alike(tensor, stream, text)
        return tensor

    def _check_subset(self, tensor: Tensor, axes: tuple[Axis, ...], word: Word) -> None:
        lost = [axis.name for axis in tensor.axes if axis not in axes]
        if lost:
            message = f"`{tensor.name}` has axis {lost[0]}, the stream has not"
            raise IllegalError("E-PLACE-MATCH", word.at, message)

    def _sum(self, text: AxisStage, stream: Stream) -> tuple[Stream, Stage]:
        stream = stream.vector(text.axis)
        axis = stream.axis(text.axis)
        check_untiled("sum", axis, self._path, text.axis)
        self._check_summed(axis, stream, text.axis)
        return stream.without((axis,)), Sum(axis.name)

    def _check_summed(self, axis: Axis, stream: Stream, word: Word) -> None:
        check_one_cluster(axis, stream.placement, word)
        parts = stream.placement.n_slice_parts(axis.name)
        if parts > 1 and AxisStage("reduce", Word(axis.name)) not in self._text.stages:
            message = f"partial sums of {axis.name} over {parts} slices; reduce {axis.name}"
            raise IllegalError("E-PARTIAL", word.at, message)

    def _reduce(self, text: AxisStage, stream: Stream) -> tuple[Stream, Stage]:
        stream = stream.vector(text.axis)
        axis = self._scope.axes.find(text.axis)
        check_untiled("reduce", axis, self._path, text.axis)
        if axis not in stream.summed:
            message = f"reduce after no sum over {axis.name}; sum or contract {axis.name} first"
            raise IllegalError("E-STAGE-ORDER", text.at, message)
        splits = [f.axis for f in stream.placement.slices if f.kind == "split" and f.count > 1]
        if splits[-1:] != [axis.name]:
            message = self._scope.toolchain.reduce_inner.format(axis=axis.name)
            raise IllegalError("E-REDUCE-INNER", text.at, message)
        return stream, Reduce(axis.name)


def _op(stage: StageText) -> str:
    match stage:
        case LookupText():
            return "lookup"
        case SwitchText():
            return "switch"
        case ContractText():
            return "contract"
        case AluText(function):
            return function.text
        case AxisStage(kind):
            return kind


def _constant(text: Number) -> float:
    value, _, divisor = text.text.partition("/")
    below = float(divisor or 1)
    constant = float(value) / below if below else inf
    if not abs(constant) <= _MAX_F32:
        raise IllegalError("E-SYNTAX", text.at, f"`{text.text}` is no finite f32", text.at)
    return constant


def _switched(placement: Placement, gathered: str) -> Placement:
    """Turn the factors that a switch fills into copies: idle ones, or the cuts of an axis."""

    def filled(factor: Factor) -> bool:
        return factor.axis == gathered if gathered else factor.kind == "idle"

    slices = (Factor("copy", f.count) if filled(f) else f for f in placement.slices)
    return Placement("", placement.cluster, tuple(slices))
