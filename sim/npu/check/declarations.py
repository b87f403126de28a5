"""Rules of axes, arguments and placements."""

from math import prod
from typing import Final, cast

from sim.npu.check.scope import Known, Scope
from sim.npu.diagnostics import IllegalError
from sim.npu.program import BLOCK, Axis, DType, Factor, Part, Placement, Tensor
from sim.npu.signature import Argument
from sim.npu.syntax import AxisDecl, FactorText, HbmDecl, KernelText, Node, PlaceDecl, Word, joined

SPANS: Final = (64, 128, 256)
"""Slices that a placement may span."""


def check_arguments(kernel: KernelText, scope: Scope) -> None:
    """Check that the kernel is the one asked for and no argument is missing.

    Raises:
        IllegalError: another kernel, or an argument without a declaration.
    """
    want = scope.signature
    if kernel.name.text != want.kernel:
        message = f"the kernel must be `{want.kernel}`, is `{kernel.name.text}`"
        raise IllegalError("E-SIGNATURE", kernel.name.at, message)
    declared = {item.name.text for item in kernel.items if isinstance(item, HbmDecl)}
    for argument in want.arguments:
        if argument.name not in declared:
            message = f"`{argument.name}` must be {argument}, is not declared"
            raise IllegalError("E-SIGNATURE", kernel.name.at, message)


def declare_axis(decl: AxisDecl, scope: Scope) -> None:
    """Add an axis.

    Raises:
        IllegalError: without elements, or not whole blocks of 16 of another axis.
    """
    name, size = decl.name.text, decl.size.value
    if decl.parent is None:
        axis = Axis(name, size)
    else:
        parent = scope.axes.find(decl.parent)
        if size != BLOCK or parent.parent:
            message = (
                f"{name} counts blocks of {size} of {parent.name}; blocks are {BLOCK} elements"
            )
            raise IllegalError("E-TILE-BLOCK", decl.at, message)
        if parent.size % BLOCK:
            message = f"axis {parent.name} of {parent.size} is not divisible into blocks of {BLOCK}"
            raise IllegalError("E-SPLIT-DIVIDES", decl.at, message)
        axis = Axis(name, parent.size // BLOCK, parent.name)
    if not axis.size:
        raise IllegalError("E-SPLIT-DIVIDES", decl.at, f"axis {name} of 0 has no elements")
    scope.axes.define(decl.name, axis)


def declare_hbm(decl: HbmDecl, scope: Scope) -> None:
    """Add an argument or scratch.

    Raises:
        IllegalError: not as the signature says, an axis twice, or too much scratch.
    """
    axes = tuple(map(scope.axes.find, decl.axes))
    for i, axis in enumerate(axes):
        if axis.root in {other.root for other in axes[:i]}:
            message = f"axis {axis.root} is in `{decl.name.text}` already; a tensor has it once"
            raise IllegalError("E-REDEFINED", decl.axes[i].at, message)
    tensor = Tensor(
        decl.name.text,
        cast(DType, decl.dtype.text),
        axes,
        "hbm",
        decl.name.position,
        part=cast(Part, decl.part.text),
    )
    scope.tensors.define(decl.name, Known(tensor))
    _check_argument(tensor, decl, scope)


def _check_argument(tensor: Tensor, decl: HbmDecl, scope: Scope) -> None:
    want = next((a for a in scope.signature.arguments if a.name == tensor.name), None)
    if want is None and tensor.part == "scratch":
        _count_scratch(tensor, decl, scope)
        return
    have = Argument(tensor.name, tensor.dtype, tensor.shape, cast(Part, decl.part.text))
    if have != want:
        message = f"`{tensor.name}` must be {want or 'scratch'}, is {have}"
        raise IllegalError("E-SIGNATURE", decl.at, message)


def _count_scratch(tensor: Tensor, decl: HbmDecl, scope: Scope) -> None:
    scope.scratch_bytes += tensor.n_bytes
    limit = scope.toolchain.limits.scratch_bytes
    if scope.scratch_bytes > limit:
        message = f"{scope.scratch_bytes} bytes of scratch up to here; there are {limit}"
        raise IllegalError("E-HBM-SIZE", decl.at, message)


def declare_place(decl: PlaceDecl, scope: Scope) -> None:
    """Add a placement.

    Raises:
        IllegalError: clusters or slices that the chip has not, or shares that are not whole.
    """
    cluster = _factor(decl.cluster, scope)
    if cluster.count not in (1, 2):
        message = f"{cluster.count} clusters; the chip has 1 or 2 in use"
        raise IllegalError("E-CLUSTERS", decl.cluster.at, message)
    slices = tuple(_slice_factor(factor, scope) for factor in decl.slices)
    span = prod(factor.count for factor in slices)
    if span not in SPANS:
        at = joined(decl.slices[0].at, decl.slices[-1].at)
        message = f"{span} slices; a placement spans 64, 128 or 256"
        raise IllegalError("E-SLICES-SPAN", at, message)
    placement = Placement(decl.name.text, cluster, slices)
    _check_splits(placement, decl, scope)
    scope.placements.define(decl.name, placement)


def _slice_factor(text: FactorText, scope: Scope) -> Factor:
    factor = _factor(text, scope)
    if factor.count.bit_count() != 1:
        message = f"factor {text.kind.text}:{factor.count} is not a power of two"
        raise IllegalError("E-SLICES-POW2", text.at, message, text.at)
    return factor


def _factor(text: FactorText, scope: Scope) -> Factor:
    count = text.count.value
    match text.kind.text:
        case "one" | "copy":
            return Factor("copy", count)
        case "idle":
            return Factor("idle", count)
        case _:
            axis = scope.axes.find(text.kind)
            if axis.parent:
                message = f"{axis.name} counts blocks of {axis.parent}; cut {axis.parent}"
                raise IllegalError("E-SPLIT-DIVIDES", text.at, message)
            return Factor("split", count, axis.name)


def _check_splits(placement: Placement, decl: PlaceDecl, scope: Scope) -> None:
    parts: dict[str, int] = {}
    for factor, text in zip(placement.slices, decl.slices, strict=True):
        if factor.kind != "split":
            continue
        if factor.axis in parts:
            message = f"{factor.axis} is cut twice by the slices of `{placement.name}`"
            raise IllegalError("E-SPLIT-TWICE", text.at, message)
        parts[factor.axis] = factor.count
        _check_share(placement, text.kind, scope)
    if placement.cluster.kind == "split":
        _check_share(placement, decl.cluster.kind, scope)


def _check_share(placement: Placement, word: Word, scope: Scope) -> None:
    axis = scope.axes.find(word)
    parts = placement.n_cluster_parts(axis.name) * placement.n_slice_parts(axis.name)
    if axis.size % parts:
        raise _indivisible(axis, parts, word)


def _indivisible(axis: Axis, parts: int, node: Node) -> IllegalError:
    message = f"axis {axis.name} of {axis.size} is not divisible into {parts} parts"
    return IllegalError("E-SPLIT-DIVIDES", node.at, message)
