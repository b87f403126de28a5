"""Rules of loads and stores."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

from sim.npu.check.scope import Known, Path, Scope, cut_block, tile
from sim.npu.diagnostics import IllegalError
from sim.npu.program import BITS, FLIT_BYTES, Axis, Load, Offset, Region, Store, Tensor
from sim.npu.syntax import Count, LoadText, OffsetText, RegionText, Span, StoreText, joined

_DMA_BITS: Final = 32


def check_load(text: LoadText, path: Path, scope: Scope) -> Load:
    """Check a load and define what it loads.

    Raises:
        IllegalError: the first rule that it breaks.
    """
    limit = scope.toolchain.limits.max_load_tensors
    if len(text.outputs) > limit:
        at = joined(text.outputs[0].at, text.outputs[-1].at)
        message = f"{len(text.outputs)} tensors in one load; at most {limit}"
        raise IllegalError("E-LOAD-LIST", at, message)
    if len(text.outputs) != len(text.sources):
        message = f"{len(text.outputs)} tensors from {len(text.sources)} sources; give one each"
        raise IllegalError("E-LOAD-LIST", text.at, message)
    sources = tuple(_source(source, path, scope) for source in text.sources)
    outputs = tuple(_outputs(text, sources, scope))
    for word, tensor in zip(text.outputs, outputs, strict=True):
        _check_moved(tensor, path, word.at)
        if text.block:
            _check_block(tensor, tile(tensor, path, word.at), text.block)
        scope.tensors.define(word, Known(tensor))
    return Load(outputs, sources, text.position)


def _source(text: RegionText, path: Path, scope: Scope) -> Region:
    for frame in path:
        if text.name.text in frame.stored:
            message = f"`{text.name.text}` is stored in this loop; load it after"
            raise IllegalError("E-LOOP-HBM", text.at, message)
    return _region(text, scope)


def _outputs(text: LoadText, sources: tuple[Region, ...], scope: Scope) -> Iterator[Tensor]:
    placement = scope.placements.find(text.place)
    block = text.block.value if text.block else 0
    for word, source in zip(text.outputs, sources, strict=True):
        axes = region_axes(source)
        for axis in axes:
            parts = placement.n_cluster_parts(axis.root) * placement.n_slice_parts(axis.root)
            if axis.size % parts:
                raise cut_block(axis, f"{parts} parts", word.at)
        yield Tensor(
            word.text, source.tensor.dtype, axes, "dm", word.position, placement, block=block
        )


def region_axes(region: Region) -> tuple[Axis, ...]:
    """Axes of what a region holds."""
    return region.tensor.axes if region.index is None else region.tensor.axes[1:]


def check_store(text: StoreText, path: Path, scope: Scope) -> Store:
    """Check a store.

    Raises:
        IllegalError: the first rule that it breaks.
    """
    source = scope.use(text.source, "dm", path)
    target = _region(text.target, scope)
    into = target.tensor
    if into.part in ("in", "weight"):
        message = f"`{into.name}` must be out, inout or scratch to be stored to, is {into.part}"
        raise IllegalError("E-SIGNATURE", text.target.at, message)
    if BITS[source.dtype] not in (16, 32):
        raise IllegalError("E-DMA-F4", text.source.at, f"{source.dtype} cannot be stored")
    if source.dtype != into.dtype:
        message = f"`{source.name}` is {source.dtype}, `{into.name}` is {into.dtype}; commit it so"
        raise IllegalError("E-STORE-SHAPE", text.at, message)
    wanted = [axis.name for axis in region_axes(target)]
    if [name for name in wanted if name in source.names] != list(source.names):
        message = f"`{source.name}` has axes {_list(source.names)}, the target {_list(wanted)}"
        raise IllegalError("E-STORE-SHAPE", text.at, message)
    _check_moved(source, path, text.source.at)
    scope.stored.add(into.name)
    return Store(source, target, text.position)


def _list(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _region(text: RegionText, scope: Scope) -> Region:
    tensor = scope.tensors.find(text.name).tensor
    if tensor.memory != "hbm":
        message = f"`{tensor.name}` is in {tensor.memory}, not in hbm; DMA moves to and from hbm"
        raise IllegalError("E-VRF-OPERAND", text.name.at, message)
    match text.index:
        case None:
            return Region(tensor)
        case Count(value, at=at):
            _check_index(value, tensor, at)
            return Region(tensor, value)
        case OffsetText():
            return Region(tensor, _offset(text.index, scope))


def _offset(text: OffsetText, scope: Scope) -> Offset:
    tensor = scope.tensors.find(text.name).tensor
    if (tensor.dtype, tensor.part, len(tensor.axes)) != ("i64", "in", 1):
        message = f"`{tensor.name}` holds no offsets; they are i64, in, of one axis"
        raise IllegalError("E-INDEX", text.at, message)
    _check_index(text.index.value, tensor, text.index.at)
    return Offset(tensor, text.index.value)


def _check_index(index: int, tensor: Tensor, at: Span) -> None:
    axis = tensor.axes[0]
    if index >= axis.size:
        message = f"index {index} of `{tensor.name}`; {axis.name} ends at {axis.size - 1}"
        raise IllegalError("E-INDEX", at, message)


def _check_moved(tensor: Tensor, path: Path, at: Span) -> None:
    n_bits = prod(tile(tensor, path, at)) * BITS[tensor.dtype]
    if tensor.axes and n_bits % _DMA_BITS:
        n_bytes = f"{n_bits / 8:g}"
        message = f"{n_bytes} bytes of `{tensor.name}` in a slice; DMA moves multiples of 4"
        raise IllegalError("E-DM-ALIGN", at, message)


def _check_block(tensor: Tensor, elements: tuple[int, ...], block: Count) -> None:
    row, n = elements[-1] if elements else 1, block.value
    if not n or row % n:
        message = f"block {n} does not divide {row}, the row of `{tensor.name}` in a slice"
        raise IllegalError("E-BLOCK-DIVIDES", block.at, message)
    n_bits = n * BITS[tensor.dtype]
    if n_bits % (8 * FLIT_BYTES):
        message = f"block {n} is {n_bits / 8:g} bytes, not a multiple of {FLIT_BYTES}"
        raise IllegalError("E-BLOCK-DIVIDES", block.at, message)
