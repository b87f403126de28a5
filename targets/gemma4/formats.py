"""The number formats of the kernels, exact: bf16, f8e4m3 (no infinities), f4e2m1 and e8m0."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _f8_values() -> NDArray[np.float64]:
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    significand = np.where(exponent == 0, mantissa, mantissa + 8)
    magnitude = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - 10)
    magnitude[(codes & 127) == 127] = np.nan
    values: NDArray[np.float64] = np.where(codes < 128, magnitude, -magnitude)
    return values


F8_VALUES: Final = _f8_values()
"""Value of every f8e4m3 code, float64[256]; NaN at 0x7f and 0xff."""

F4_VALUES: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""Value of every f4e2m1 code, float64[16]."""

E8M0_VALUES: Final = np.append(np.ldexp(1.0, np.arange(255) - 127), np.nan)
"""Value of every e8m0 code, a power of two, float64[256]; NaN at 0xff."""


def bf16_decode(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the values of bf16 codes, same shape."""
    return (codes.astype(np.uint32) << 16).view(np.float32)


def bf16_encode(values: ArrayLike) -> NDArray[np.uint16]:
    """Return the nearest bf16 codes, same shape; what is too large becomes infinite.

    Ties go to even, straight from float64: by way of float32 it would round twice.
    """
    exact = np.asarray(values, dtype=np.float64)
    _, exponent = np.frexp(exact)
    unit = np.maximum(exponent - 8, -133)
    with np.errstate(over="ignore"):
        rounded = np.asarray(np.ldexp(np.rint(np.ldexp(exact, -unit)), unit), dtype=np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)
