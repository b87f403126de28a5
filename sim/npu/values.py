"""Arithmetic of the tensor unit on whole tensors: where they lie, and in which tiles, is no matter.

Vector arithmetic is f32. A sum or contraction adds exact products in f64, each row by itself in
numpy's pairwise order, and is rounded once: no tile, chunk or thread changes a bit of it.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from sim.npu.dtypes import Data, Floats, Wide, dense, rows
from sim.npu.program import BLOCK, AluFunction

_CHUNK: Final = 1 << 17
"""Decoded weights held at a time: 1 MB stays in the cache."""


Live = tuple[tuple[int | None, tuple[bool, ...]], ...]
"""Axes by position in the stream, and which of their equal parts an operand reaches; None stands
for an axis that the stream has no more."""


class Reading(NamedTuple):
    """How a stage reads an operand."""

    axes: tuple[int, ...] = ()
    """Position of each of the operand's axes among the stream's."""
    live: Live = ()
    """The operand reads 0 in the other parts."""


def _aligned(operand: Floats, axes: tuple[int, ...], n_axes: int) -> Floats:
    """Return an operand with the stream's axes, of size 1 where it has none of its own."""
    sizes = dict(zip(axes, operand.shape, strict=True))
    shape = [sizes.get(i, 1) for i in range(n_axes)]
    return operand.transpose(np.argsort(axes)).reshape(shape)


def _reached(values: Floats, live: Live, shape: tuple[int, ...]) -> Floats:
    """Return aligned values as a stream of that shape reads them."""
    for axis, parts in live:
        if axis is None:
            return np.zeros_like(values)
        mask = np.repeat(parts, shape[axis] // len(parts))
        mask = mask.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        values = np.where(mask, values, np.float32(0))
    return values


def contract(
    stream: Data, operand: tuple[Reading, Data], scale: tuple[Reading, Data] | None
) -> Floats:
    """Sum the stream times an operand over the operand's axes.

    Args:
        stream: its last axes are those of ``operand``.
        operand: a factor for each column.
        scale: a factor for each `BLOCK` columns, applied to the sum over the block; it has the axes
            of the stream, or some of them.
    """
    shape = stream.shape
    (axes, live), factors = operand
    n_rows = len(shape) - len(axes)
    blocks = None
    if scale is not None:
        live += scale[0].live
        blocks = _by_block(*scale, shape)
    of_columns = tuple((axis, parts) for axis, parts in live if axis is not None and axis >= n_rows)
    of_rows = tuple(part for part in live if part not in of_columns)
    columns = _reached(_aligned(dense(factors), axes, len(shape)), of_columns, shape)
    sums = _matrix_times(stream, columns.ravel(), blocks).reshape(shape[:n_rows])
    return _reached(sums, of_rows, shape[:n_rows])


def _by_block(reading: Reading, scale: Data, shape: tuple[int, ...]) -> Data:
    """Return a scale for every block of every row; one that has them all stays encoded."""
    if reading.axes == tuple(range(len(shape))):
        return scale
    blocks = (*shape[:-1], shape[-1] // BLOCK)
    return np.broadcast_to(_aligned(dense(scale), reading.axes, len(shape)), blocks)


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


def garbage(key: str, seed: int, n_bytes: int) -> NDArray[np.uint8]:
    """Return bytes without meaning, the same for the same key and seed."""
    rng = np.random.Generator(np.random.SFC64([seed, int(key, 16)]))
    return np.frombuffer(rng.bytes(n_bytes), np.uint8)


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


def alu(
    function: AluFunction, stream: Floats, operands: Sequence[tuple[Reading, Floats]]
) -> Floats:
    """Apply one arithmetic unit; every operation is rounded to f32."""
    shape = stream.shape
    read = [
        _reached(_aligned(values, axes, len(shape)), live, shape)
        for (axes, live), values in operands
    ]
    return np.asarray(_ALU[function](stream, *read), np.float32)
