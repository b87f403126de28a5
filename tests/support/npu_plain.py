"""The NPU's language once more, slowly: tile by tile, decoded, sums exact, roundings by table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from sim.npu.program import (
    BLOCK,
    Alu,
    Contract,
    Load,
    Lookup,
    Loop,
    Offset,
    Pass,
    Program,
    Reduce,
    Region,
    Statement,
    Store,
    Sum,
    Switch,
    Tensor,
)

Array = NDArray[Any]
Tiles = Mapping[str, tuple[int, int]]
"""By axis, which of how many tiles the loops are at."""


def f8_values() -> Array:
    """Return all values of f8e4m3 from 0 up, in the order of their codes."""
    return np.array(
        [math.ldexp((code & 7) / 8 + (code > 7), max(code >> 3, 1) - 7) for code in range(127)]
    )


F8 = f8_values()
F4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def signed(table: Array, codes: Array, sign: int) -> Array:
    """Decode codes of which one bit is the sign."""
    values: Array = np.where(codes & sign, -1.0, 1.0) * table[codes & (sign - 1)]
    return values


def nearest_f8(values: Array) -> Array:
    """Round by searching the table: ties to the even code, beyond the end to the end."""
    magnitude = np.minimum(np.abs(values.astype(np.float64)), F8[-1])
    above = np.searchsorted(F8, np.nan_to_num(magnitude)).clip(1)
    low, high = F8[above - 1], F8[above]
    middle = (low + high) / 2
    up = (magnitude > middle) | ((magnitude == middle) & (above % 2 == 0))
    return np.where(np.isnan(values), np.nan, np.copysign(np.where(up, high, low), values))


def nearest_bf16(values: Array) -> Array:
    """Round by adding to the bits below the mantissa, as an integer."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), kept)


def pieces(values: Array, n: int) -> Array:
    """Split by the definition."""
    top = np.abs(values).max()
    if not np.isfinite(top):
        return np.full(values.shape, np.nan)
    k = next(k for k in range(-400, 400) if 128 <= top * 2.0**k < 256) if top else 0
    total = np.zeros(values.shape)
    for _ in range(n):
        total = total + nearest_f8(values * 2.0**k - total)
    return total / 2.0**k


class Plain:
    """Runs one program on decoded arguments; `hbm` and `chip` hold all tensors at the end."""

    def __init__(self, program: Program, arguments: Mapping[str, Array]) -> None:
        self.hbm = {t.name: np.full(t.shape, np.nan) for t in program.arguments}
        for name, values in arguments.items():
            self.hbm[name] = values.astype(np.float64)
        self.chip: dict[str, Array] = {}
        self._products: dict[str, Array] = {}
        self._run(program.body, {})

    def _run(self, body: Sequence[Statement], tiles: Tiles) -> None:
        for statement in body:
            match statement:
                case Loop():
                    for i in range(statement.count):
                        self._run(statement.body, {**tiles, statement.axis: (i, statement.count)})
                case Load():
                    for output, region in zip(statement.outputs, statement.sources, strict=True):
                        self._write(
                            output, tiles, self._region(region)[np.ix_(*indices(output, tiles))]
                        )
                case Store():
                    source = statement.source
                    at = np.ix_(*indices(source, tiles))
                    self._region(statement.target)[at] = self.chip[source.name][at]
                case Pass():
                    self._pass(statement, tiles)

    def _region(self, region: Region) -> Array:
        whole, index = self.hbm[region.tensor.name], region.index
        if isinstance(index, Offset):
            row_bytes = region.tensor.n_bytes // region.tensor.shape[0]
            index = int(self.hbm[index.tensor.name][index.index]) // row_bytes
        return np.asarray(whole if index is None else whole[index])

    def _write(self, tensor: Tensor, tiles: Tiles, values: Array) -> None:
        whole = self.chip.setdefault(tensor.name, np.full(tensor.shape, np.nan))
        whole[np.ix_(*indices(tensor, tiles))] = values

    def _read(self, tensor: Tensor, tiles: Tiles) -> Array:
        return self.chip[tensor.name][np.ix_(*indices(tensor, tiles))]

    def _pass(self, command: Pass, tiles: Tiles) -> None:
        names, x = list(command.source.names), self._read(command.source, tiles)
        if command.roll:
            axis = names.index(command.roll)
            x = np.concatenate(np.split(x, 2, axis)[::-1], axis)
        entered = None
        for stage in command.stages:
            match stage:
                case Contract():
                    x = self._contract(command, stage, x, tiles)
                    names = names[: -len(stage.operand.axes)]
                case Sum():
                    axis = names.index(stage.axis)
                    x = np.apply_along_axis(total, axis, x)
                    del names[axis]
                case Alu():
                    entered = x if entered is None else entered
                    read = [self._operand(o, names, entered, tiles) for o in stage.operands]
                    x = arithmetic(stage.function, *(np.asarray(v, np.float32) for v in (x, *read)))
                case Lookup() | Switch() | Reduce():
                    pass
        self._write(command.output, tiles, rounded(command.output, x))

    def _operand(
        self,
        operand: Tensor | float | Literal["self"],
        names: list[str],
        entered: Array,
        tiles: Tiles,
    ) -> Array | float:
        if operand == "self":
            return entered
        if not isinstance(operand, Tensor):
            return operand
        at = [names.index(a.parent if a.parent in names else a.name) for a in operand.axes]
        values = np.einsum(self._read(operand, tiles), at, sorted(at))
        return np.expand_dims(values, [i for i in range(len(names)) if i not in at])

    def _contract(self, command: Pass, stage: Contract, x: Array, tiles: Tiles) -> Array:
        """Add this tile's products to those of the tiles before, and sum them all."""
        source, shape = command.source, list(command.source.shape)
        at = indices(source, tiles)
        n_rows = len(shape) - len(stage.operand.axes)
        products = x * self._read(stage.operand, tiles)
        if stage.scale:
            products = products.reshape(*products.shape[:-1], -1, BLOCK).sum(axis=-1)
            products = products * self._operand(stage.scale, list(source.names), x, tiles)
            shape[-1] //= BLOCK
            at = [*at[:-1], at[-1][::BLOCK] // BLOCK]
        known = self._products.setdefault(command.output.name, np.zeros(shape))
        known[np.ix_(*at)] = products
        rows = known[np.ix_(*at[:n_rows])]
        lines = rows.reshape(*rows.shape[:n_rows], -1)
        return np.apply_along_axis(total, -1, lines)


def indices(tensor: Tensor, tiles: Tiles) -> list[Array]:
    """Return, for each axis, which elements belong to the tile: a part of each slice's share."""
    found = []
    for axis, share in zip(tensor.axes, tensor.share, strict=True):
        i, n = tiles.get(axis.root, (0, 1))
        elements = np.arange(axis.size)
        found.append(elements[elements % share // (share // n) == i])
    return found


def total(line: Array) -> np.float32:
    """Sum exactly and round once."""
    try:
        return np.float32(math.fsum(line))
    except (OverflowError, ValueError):  # infinities
        return np.float32(line.sum())


def rounded(output: Tensor, values: Array) -> Array:
    """Commit."""
    x = np.asarray(values, np.float32)
    if output.memory == "trf" and output.dtype == "f8e4m3":
        return pieces(x, output.pieces)
    if output.memory == "vrf" or output.dtype == "f32":
        return x
    return nearest_bf16(x) if output.dtype == "bf16" else nearest_f8(x)


def arithmetic(function: str, x: Array, a: Any = None, b: Any = None) -> Any:
    """Apply one function to f32 values; the transcendental ones by way of f64."""
    wide = x.astype(np.float64)
    match function:
        case "mul":
            return x * a
        case "fma":
            return x * a + b
        case "add":
            return x + a
        case "sub":
            return x - a
        case "max":
            return np.where(np.isnan(x) | np.isnan(a), np.nan, np.where(x < a, a, x))
        case "div":
            return x / a
        case "exp":
            return np.float32(np.exp(wide))
        case "erf":
            return np.float32(erf(wide))
        case _:
            return np.float32(wide**-0.5)
