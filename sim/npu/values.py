"""Arithmetic of the tensor unit on whole tensors: where they lie, and in which tiles, is no matter.

Vector arithmetic is f32. A sum or contraction adds exact products in f64, each row by itself in
numpy's pairwise order, and is rounded once: no tile, chunk or thread changes a bit of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from sim.npu.dtypes import Data, Floats, Wide, dense, rows
from sim.npu.program import BLOCK, AluFunction, DType

_CHUNK: Final = 1 << 17
"""Decoded weights held at a time: 1 MB stays in the cache."""


@dataclass(frozen=True, eq=False)
class Value:
    """A whole tensor."""

    key: str
    """Equal keys, equal values."""
    data: Data
    dtype: DType
    """The narrowest format known to hold it."""


Live = tuple[tuple[int | None, tuple[bool, ...]], ...]
"""Axes by position in the stream, and which of their equal parts an operand reaches; None stands
for an axis that the stream has no more."""


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor, constant or earlier stream as a stage reads it."""

    value: Value
    axes: tuple[int, ...] = ()
    """Position of each of its axes among the stream's."""
    live: Live = ()
    """It reads 0 in the other parts."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys, equal readings."""
        return self.value.key, self.axes, self.live

    def aligned(self, n_axes: int) -> Floats:
        """Return all values with the stream's axes, of size 1 where it has none of its own."""
        values = dense(self.value.data)
        sizes = dict(zip(self.axes, values.shape, strict=True))
        shape = [sizes.get(i, 1) for i in range(n_axes)]
        return values.transpose(np.argsort(self.axes)).reshape(shape)


def _reached(values: Floats, live: Live, shape: tuple[int, ...]) -> Floats:
    """Return aligned values as a stream of that shape reads them."""
    for axis, parts in live:
        if axis is None:
            return np.zeros_like(values)
        mask = np.repeat(parts, shape[axis] // len(parts))
        mask = mask.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        values = np.where(mask, values, np.float32(0))
    return values


def contract(stream: Data, n_rows: int, operand: Operand, scale: Operand | None) -> Floats:
    """Sum the stream times an operand over all axes but the first ``n_rows``.

    Args:
        stream: rows, and columns that are the axes of ``operand``.
        n_rows: how many axes count rows.
        operand: a factor for each column.
        scale: a factor for each `BLOCK` columns, applied to the sum over the block; it has the axes
            of the stream, or some of them.
    """
    shape = stream.shape
    live = operand.live + (scale.live if scale else ())
    of_columns = tuple(part for part in live if part[0] is not None and part[0] >= n_rows)
    of_rows = tuple(part for part in live if part not in of_columns)
    factors = _reached(operand.aligned(len(shape)), of_columns, shape).ravel()
    blocks = None if scale is None else _by_block(scale, shape)
    sums = _matrix_times(stream, factors, blocks).reshape(shape[:n_rows])
    return _reached(sums, of_rows, shape[:n_rows])


def _by_block(scale: Operand, shape: tuple[int, ...]) -> Data:
    """Return a scale for every block of every row; one that has them all stays encoded."""
    if scale.axes == tuple(range(len(shape))):
        return scale.value.data
    return np.broadcast_to(scale.aligned(len(shape)), (*shape[:-1], shape[-1] // BLOCK))


def _matrix_times(matrix: Data, factors: Floats, blocks: Data | None) -> Floats:
    n_columns = factors.size
    wide = factors.astype(np.float64)
    sums = np.empty(prod(matrix.shape) // n_columns, np.float32)
    step = max(1, _CHUNK // n_columns)
    for start in range(0, len(sums), step):
        chunk = slice(start, start + step)
        products = rows(matrix, n_columns, chunk)
        products *= wide
        if blocks is not None:
            products = products.reshape(len(products), -1, BLOCK).sum(axis=-1)
            products *= rows(blocks, n_columns // BLOCK, chunk)
        sums[chunk] = products.sum(axis=-1)
    return sums


def sum_over(values: Floats, axis: int) -> Floats:
    """Sum over one axis."""
    lines = np.ascontiguousarray(np.moveaxis(values, axis, -1), np.float64)
    total: Floats = np.asarray(lines.sum(axis=-1), np.float32)
    return total


def roll(values: Floats, axis: int) -> Floats:
    """Exchange the halves of an axis."""
    return np.roll(values, values.shape[axis] // 2, axis)


def flit_major(values: Floats, axis: int, n_parts: int, n_flit: int) -> Floats:
    """Return what arrives when all parts send their first flit before any sends its second.

    Args:
        values: the whole tensor.
        axis: the gathered one.
        n_parts: slices that cut it.
        n_flit: elements a flit; the last one of a part may be shorter.
    """
    order = np.arange(values.shape[axis]).reshape(n_parts, -1)
    flits = [order[:, start : start + n_flit].ravel() for start in range(0, order.shape[1], n_flit)]
    return values.take(np.concatenate(flits), axis)


def generator(key: str) -> np.random.Generator:
    """Return a random generator seeded by a key, hexadecimal digits."""
    return np.random.Generator(np.random.SFC64(int(key, 16)))


def garbage(key: str, shape: tuple[int, ...]) -> Floats:
    """Return finite values without meaning, the same for the same key."""
    return generator(key).standard_normal(shape, np.float32)


def _in_f64(function: Callable[[Wide], Wide]) -> Callable[[Floats], NDArray[Any]]:
    return lambda values: function(values.astype(np.float64))


_ALU: Final[Mapping[AluFunction, Callable[..., NDArray[Any]]]] = {
    "add": np.add,
    "div": np.divide,
    "erf": _in_f64(erf),
    "exp": _in_f64(np.exp),
    "fma": lambda stream, factor, addend: stream * factor + addend,
    "max": np.maximum,
    "mul": np.multiply,
    "rsqrt": _in_f64(lambda values: 1.0 / np.sqrt(values)),
    "sub": np.subtract,
}


def alu(function: AluFunction, stream: Floats, operands: Sequence[Operand]) -> Floats:
    """Apply one arithmetic unit; every operation is rounded to f32."""
    shape = stream.shape
    read = [_reached(o.aligned(len(shape)), o.live, shape) for o in operands]
    return np.asarray(_ALU[function](stream, *read), np.float32)
