"""HBM in the course of a program: what loads read and stores leave."""

from collections.abc import Mapping

import numpy as np

from sim.npu.dtypes import STORAGE, Array, Data, dense, load, store
from sim.npu.faults import missing_axes, region_axes
from sim.npu.memo import Launch, Node, digest
from sim.npu.program import Offset, Region, Store, Tensor
from sim.npu.values import garbage


def span(region: Region, arguments: Mapping[str, Array]) -> slice:
    """Return which bytes of its tensor a region takes; an offset may lead out of it."""
    tensor = region.tensor
    if region.index is None:
        return slice(0, tensor.n_bytes)
    n_row = tensor.n_bytes // tensor.shape[0]
    if isinstance(region.index, Offset):
        start = int(arguments[region.index.tensor.name].flat[region.index.index])
    else:
        start = region.index * n_row
    return slice(start, start + n_row)


def region_key(region: Region) -> object:
    """Return what tells a region from all others, in any launch."""
    index = region.index
    where = (index.tensor.name, index.index) if isinstance(index, Offset) else index
    return region.tensor.name, where


class Hbm:
    """The tensors of a program as its statements go by."""

    def __init__(self) -> None:
        self._whole: dict[str, Node] = {}
        """Value of tensors that one store wrote as a whole."""
        self._codes: dict[str, Node] = {}
        """Codes of all tensors used so far, flat."""

    def codes(self, tensor: Tensor) -> Node:
        """Return the codes that a tensor holds."""
        if tensor.name not in self._codes:
            unknown = tensor.part in ("out", "scratch")
            self._codes[tensor.name] = _unwritten(tensor) if unknown else _argument(tensor)
        return self._codes[tensor.name]

    def load(self, region: Region, output: Tensor) -> Node:
        """Return the value of a region, as tensor ``output``."""
        if region.index is None and region.tensor.name in self._whole:
            return self._whole[region.tensor.name]

        def compute(launch: Launch, codes: Array) -> Data:
            row = codes.view(np.uint8)[span(region, launch.arguments)].view(codes.dtype)
            return load(row, output.dtype, output.shape)

        before = self.codes(region.tensor)
        key = digest("load", region_key(region), output.shape, before.key)
        return Node(key, output.dtype, compute, (before,))

    def store(self, command: Store, value: Node) -> None:
        """Write a value to a region; index 0 of the axes that it lacks."""
        region, lacks = command.target, missing_axes(command)
        tensor = region.tensor
        if region.index is None and not lacks:
            self._whole[tensor.name] = value
            self._codes[tensor.name] = Node(
                digest("codes", tensor.dtype, value.key),
                tensor.dtype,
                lambda _, values: store(dense(values), tensor.dtype).ravel(),
                (value,),
            )
            return
        shape = tuple(axis.size for axis in region_axes(region))
        index = tuple(0 if i in lacks else slice(None) for i in range(len(shape)))

        def compute(launch: Launch, codes: Array, values: Data) -> Array:
            after = codes.copy()
            row = after.view(np.uint8)[span(region, launch.arguments)].view(codes.dtype)
            row.reshape(shape)[index] = store(dense(values), tensor.dtype)
            return after

        before = self.codes(tensor)
        key = digest("write", region_key(region), lacks, before.key, value.key)
        self._whole.pop(tensor.name, None)
        self._codes[tensor.name] = Node(key, tensor.dtype, compute, (before, value))


def _argument(tensor: Tensor) -> Node:
    def compute(launch: Launch) -> Array:
        return launch.arguments[tensor.name].ravel()

    return Node(digest("argument", tensor.name, tensor.dtype, tensor.shape), tensor.dtype, compute)


def _unwritten(tensor: Tensor) -> Node:
    """Return NaN, or anything where the format has next to no codes for it."""
    key = digest("unwritten", tensor.name, tensor.dtype, tensor.shape)
    n_bytes = tensor.n_bytes

    def compute(launch: Launch) -> Array:
        if tensor.dtype in ("bf16", "f32"):
            codes = np.full(n_bytes, 0xFF, np.uint8)
        else:
            codes = garbage(key, launch.seed, n_bytes)
        return codes.view(STORAGE[tensor.dtype])

    return Node(key, tensor.dtype, compute)
