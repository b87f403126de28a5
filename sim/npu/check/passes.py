"""Rules of a pass as a whole: what it fetches and what it commits."""

from math import prod
from typing import Final, cast

from sim.npu.check.scope import Known, Path, Scope, tile
from sim.npu.check.stages import Stages
from sim.npu.check.stream import Stream, check_untiled, not_cast
from sim.npu.diagnostics import IllegalError
from sim.npu.program import BITS, FLIT_BYTES, Context, Contract, DType, Memory, Pass, Stage, Tensor
from sim.npu.syntax import CommitText, LookupText, PassText, Word, joined

_LANES: Final = (1, 2, 4, 8)
_MAX_PIECES: Final = 3
_COMMIT_BITS: Final = 32


def check_pass(text: PassText, path: Path, scope: Scope) -> Pass:
    """Check a pass and define what it commits.

    Raises:
        IllegalError: the first rule that it breaks.
    """
    source = scope.use(text.source, "dm", path)
    assert source.placement is not None, source.name
    stream = Stream(source.dtype, source.axes, source.placement)
    if text.roll:
        _check_roll(text.roll, text, stream, path, scope)
    stream, stages = Stages(text, path, scope).check(stream)
    output = _committed(text, stream, scope)
    _check_width(output, tile(output, path, text.output.at), text.commit)
    scope.tensors.define(text.output, Known(output, _partial_in(stages, path)))
    roll = text.roll.text if text.roll else ""
    return Pass(cast(Context, text.context.text), output, source, roll, stages, text.position)


def _partial_in(stages: tuple[Stage, ...], path: Path) -> frozenset[int]:
    """Numbers of the loops over an axis that the pass contracts: it sums over their iterations."""
    contracted = {
        axis.root for stage in stages if isinstance(stage, Contract) for axis in stage.operand.axes
    }
    return frozenset(frame.number for frame in path if frame.axis.name in contracted)


def _check_roll(word: Word, text: PassText, stream: Stream, path: Path, scope: Scope) -> None:
    at = joined(text.context.at, word.at)
    if text.context.text == "sub" and not scope.toolchain.limits.sub_rolls:
        raise IllegalError("E-SUB-ROLL", word.at, "the sub context cannot roll", at)
    axis = stream.axis(word)
    check_untiled("roll", axis, path, word)
    placement = stream.placement
    parts = placement.n_cluster_parts(axis.name) * placement.n_slice_parts(axis.name)
    if parts > 1:
        message = f"{axis.name} is cut into {parts} parts; roll a whole axis"
        raise IllegalError("E-ROLL-SPLIT", word.at, message)
    if axis.size % 2:
        raise IllegalError("E-ROLL-SPLIT", word.at, f"{axis.name} of {axis.size} has no halves")


def _committed(text: PassText, stream: Stream, scope: Scope) -> Tensor:
    commit = text.commit
    memory = cast(Memory, commit.memory.text)
    dtype = cast(DType, commit.dtype.text) if commit.dtype else "f32"
    if memory == "trf":
        _check_trf(text)
    if stream.dtype not in ("bf16", "f32"):
        if (memory, dtype) != ("dm", stream.dtype) or dtype == "i64":
            raise not_cast(stream.dtype, commit.memory)
    elif dtype in ("f4e2m1", "i64"):
        message = f"{stream.dtype} is not cast to {dtype} on commit"
        raise IllegalError("E-FETCH-CAST", commit.at, message)
    return Tensor(
        text.output.text,
        dtype,
        stream.axes,
        memory,
        text.output.position,
        stream.placement,
        lanes=commit.lanes.value if commit.lanes else 1,
        pieces=commit.pieces.value if commit.pieces else 1,
    )


def _check_trf(text: PassText) -> None:
    commit = text.commit
    if text.context.text == "sub":
        raise IllegalError("E-TRF-SUB", commit.at, "TRF is filled from main, not from sub")
    decoded = next((stage for stage in text.stages if isinstance(stage, LookupText)), None)
    if decoded:
        at = joined(decoded.at, commit.at)
        raise IllegalError("E-LOOKUP-TRF", commit.at, "a decoded stream cannot go to TRF", at)
    assert commit.dtype is not None
    dtype = commit.dtype.text
    if dtype not in ("bf16", "f8e4m3"):
        message = f"TRF holds bf16 or f8e4m3, not {dtype}"
        raise IllegalError("E-CONTRACT-DTYPE", commit.at, message, commit.at)
    if commit.pieces and dtype == "bf16":
        message = f"{commit.pieces.value} pieces of bf16; only f8e4m3 is split"
        raise IllegalError("E-PIECES", commit.at, message, commit.at)
    if commit.pieces and not 1 <= commit.pieces.value <= _MAX_PIECES:
        message = f"{commit.pieces.value} pieces; 1 to {_MAX_PIECES}"
        raise IllegalError("E-PIECES", commit.at, message, commit.at)


def _check_width(output: Tensor, elements: tuple[int, ...], commit: CommitText) -> None:
    n_bits = prod(elements) * BITS[output.dtype]
    if output.memory == "dm" and output.axes and n_bits < _COMMIT_BITS:
        message = f"{n_bits / 8:g} bytes of `{output.name}` in a slice; a commit writes 4 or more"
        raise IllegalError("E-COMMIT-WIDTH", commit.at, message)
    if output.memory != "trf":
        return
    if output.lanes not in _LANES:
        message = f"{output.lanes} lanes; 1, 2, 4 or 8"
        raise IllegalError("E-LANES", commit.at, message, commit.at)
    if n_bits % (8 * FLIT_BYTES * output.lanes):
        message = f"{n_bits / 8:g} bytes do not fill {output.lanes} lanes of {FLIT_BYTES}"
        raise IllegalError("E-LANES", commit.at, message)
