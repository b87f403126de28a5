"""HBM during a launch: what loads read and stores leave."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.npu.dtypes import STORAGE, Array, dense, load, store
from sim.npu.faults import missing_axes
from sim.npu.memo import Memo, digest
from sim.npu.program import Load, Offset, Region, Store, Tensor
from sim.npu.values import Value, generator


def strays(command: Load | Store, arguments: Mapping[str, Array]) -> bool:
    """Tell whether a DMA command leaves the tensor that it addresses."""
    regions = command.sources if isinstance(command, Load) else (command.target,)
    spans = [_span(region, arguments) for region in regions]
    return any(
        span.start < 0 or span.stop > region.tensor.n_bytes
        for span, region in zip(spans, regions, strict=True)
    )


def _span(region: Region, arguments: Mapping[str, Array]) -> slice:
    """Return which bytes of its tensor a region takes."""
    tensor = region.tensor
    if region.index is None:
        return slice(0, tensor.n_bytes)
    n_row = tensor.n_bytes // tensor.shape[0]
    if isinstance(region.index, Offset):
        start = int(arguments[region.index.tensor.name].flat[region.index.index])
    else:
        start = region.index * n_row
    return slice(start, start + n_row)


@dataclass(frozen=True, eq=False)
class _Cell:
    """What one tensor holds between two stores."""

    key: str
    """Of all of it, as a value."""
    codes: Array
    """Flat."""


class Hbm:
    """The tensors of a launch; what nobody wrote is NaN, or random where a format lacks it."""

    def __init__(self, arguments: Mapping[str, Array], memo: Memo, seed: int) -> None:
        self._arguments, self._memo, self._seed = arguments, memo, seed
        self._cells: dict[str, _Cell] = {}

    def codes(self, tensor: Tensor) -> Array:
        """Return a copy of what a tensor holds."""
        return self._cell(tensor).codes.reshape(tensor.shape).copy()

    def load(self, region: Region, output: Tensor) -> Value:
        """Return the value of a region, as tensor ``output``."""
        cell = self._cell(region.tensor)
        key, codes = cell.key, cell.codes
        if region.index is not None:
            span = _span(region, self._arguments)
            key = digest("row", span.start, output.shape, key)
            codes = codes.view(np.uint8)[span].view(codes.dtype)
        return Value(key, load(codes, output.dtype, output.shape), output.dtype)

    def store(self, command: Store, value: Value) -> None:
        """Write a value to a region; index 0 of the axes that it lacks."""
        tensor, lacks = command.target.tensor, missing_axes(command)
        codes = store(dense(value.data), tensor.dtype)
        if command.target.index is None and not lacks:
            self._cells[tensor.name] = _Cell(value.key, codes.ravel())
            return
        before = self._cell(tensor)
        span = _span(command.target, self._arguments)
        after = before.codes.copy()
        shape = tensor.shape if command.target.index is None else tensor.shape[1:]
        region = after.view(np.uint8)[span].view(after.dtype).reshape(shape)
        region[tuple(0 if i in lacks else slice(None) for i in range(len(shape)))] = codes
        key = digest("write", span.start, lacks, before.key, value.key)
        self._cells[tensor.name] = _Cell(key, after)

    def _cell(self, tensor: Tensor) -> _Cell:
        if tensor.name not in self._cells:
            unknown = tensor.part in ("out", "scratch")
            self._cells[tensor.name] = (self._unwritten if unknown else self._argument)(tensor)
        return self._cells[tensor.name]

    def _argument(self, tensor: Tensor) -> _Cell:
        array = self._arguments[tensor.name]
        key = digest("argument", tensor.dtype, tensor.shape, self._memo.fingerprint(array))
        return _Cell(key, array.ravel())

    def _unwritten(self, tensor: Tensor) -> _Cell:
        storage = STORAGE[tensor.dtype]
        if tensor.dtype in ("bf16", "f32"):
            key = digest("unwritten", tensor.dtype, tensor.shape)
            return _Cell(key, np.full(tensor.n_bytes, 0xFF, np.uint8).view(storage))
        key = digest("unwritten", tensor.dtype, tensor.shape, tensor.name, self._seed)
        return _Cell(key, np.frombuffer(generator(key).bytes(tensor.n_bytes), storage))
