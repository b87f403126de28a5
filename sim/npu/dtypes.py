"""The NPU's number formats: what codes are worth, and how a result is rounded to a format."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.npu.program import DType

Array = NDArray[Any]
Floats = NDArray[np.float32]
Wide = NDArray[np.float64]


class Format(NamedTuple):
    """A binary floating point format with gradual underflow."""

    mantissa: int
    """Stored bits."""
    min_exponent: int
    """Of the smallest normal number."""
    largest: float
    """What is larger saturates there; infinite: overflows to infinity."""


FORMATS: Final[Mapping[DType, Format]] = {
    "f4e2m1": Format(1, 0, 6.0),
    "f8e4m3": Format(3, -6, 448.0),
    "bf16": Format(7, -126, inf),
}
"""Formats narrower than f32; each holds all finite values of those before it."""

STORAGE: Final[Mapping[DType, np.dtype[Any]]] = {
    "f4e2m1": np.dtype(np.uint8),
    "f8e4m3": np.dtype(np.uint8),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
}
"""Element type of the arrays that stand for HBM; a byte holds two f4 codes, the low half first."""

_WIDTH: Final[tuple[DType, ...]] = (*FORMATS, "f32")


def holds(wide: DType, narrow: DType) -> bool:
    """Tell whether every value of format ``narrow`` is one of ``wide``."""
    return _WIDTH.index(wide) >= _WIDTH.index(narrow)


def round_to(values: Floats | Wide, dtype: DType) -> Floats:
    """Round to the nearest value of a format, ties to even; NaN stays, f8 and f4 saturate."""
    if dtype == "f32":
        return values.astype(np.float32)
    mantissa, min_exponent, largest = FORMATS[dtype]
    exponent = np.frexp(values)[1] - 1
    unit = np.maximum(exponent, min_exponent) - mantissa
    rounded = np.ldexp(np.rint(np.ldexp(values.astype(np.float64), -unit)), unit)
    clipped: Floats = np.clip(rounded, -largest, largest).astype(np.float32)
    return clipped


def in_pieces(values: Floats, n: int) -> Floats:
    """Return what ``n`` f8e4m3 terms keep of each value.

    All values are scaled by one power of two that puts the largest into [128, 256); each term is
    what f8e4m3 makes of the rest that those before it left. One value that is not finite makes all
    of them NaN.
    """
    top = np.abs(values).max(initial=0.0)
    if not np.isfinite(top):
        return np.full_like(values, np.nan)
    shift = 8 - int(np.frexp(top)[1]) if top else 0
    scaled = np.ldexp(values.astype(np.float64), shift)
    kept = np.zeros_like(scaled)
    for _ in range(n):
        kept += round_to(scaled - kept, "f8e4m3")
    return np.ldexp(kept, -shift).astype(np.float32)


def _f8_values() -> Wide:
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    magnitude = np.where(exponent, 8 + fraction, fraction) * 2.0 ** (np.maximum(exponent, 1) - 10)
    magnitude[codes & 127 == 127] = np.nan
    values: Wide = np.where(codes < 128, magnitude, -magnitude)
    return values


F8_VALUES: Final = _f8_values()
"""Of every f8e4m3 code."""
F4_VALUES: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""Of every f4e2m1 code."""
_F4_PAIRS: Final = F4_VALUES[np.arange(256) & 15] + 1j * F4_VALUES[np.arange(256) >> 4]
"""Both values of a byte as one complex number: neighbours in memory once viewed as floats."""


def decode(codes: NDArray[np.uint8], dtype: DType) -> Wide:
    """Return the values of f8 or f4 codes; f4 doubles the last axis."""
    table = F8_VALUES if dtype == "f8e4m3" else _F4_PAIRS
    values: Wide = table.take(codes).view(np.float64)
    return values


@dataclass(frozen=True, eq=False)
class Coded:
    """A tensor of f8 or f4 weights that stays encoded: 1 or 1/2 byte an element."""

    codes: NDArray[np.uint8]
    dtype: DType
    shape: tuple[int, ...]
    """In elements."""


Data = Floats | Coded


def dense(data: Data) -> Floats:
    """Return all values, decoded."""
    if isinstance(data, Coded):
        return decode(data.codes, data.dtype).astype(np.float32).reshape(data.shape)
    return data


def rows(data: Data, n_columns: int, which: slice) -> Wide:
    """Return some rows of a tensor seen as a matrix with ``n_columns``; the array is new."""
    if isinstance(data, Coded):
        n_rows = prod(data.shape) // n_columns
        return decode(data.codes.reshape(n_rows, -1)[which], data.dtype)
    return data.reshape(-1, n_columns)[which].astype(np.float64)


def load(codes: Array, dtype: DType, shape: tuple[int, ...]) -> Data:
    """Return the values of codes in HBM."""
    match dtype:
        case "f8e4m3" | "f4e2m1":
            return Coded(codes, dtype, shape)
        case "bf16":
            return (codes.astype(np.uint32) << 16).view(np.float32).reshape(shape)
        case _:
            return codes.astype(np.float32).reshape(shape)


def store(values: Floats, dtype: DType) -> Array:
    """Return the codes of bf16 or f32 values that the format holds."""
    if dtype == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values
