"""The number formats of the kernels, exact: bf16, f8e4m3 (no infinities) and f4e2m1.

Every encoder rounds to nearest, ties to even, from float64, so that there is no second rounding.
"""

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


def _on_grid(values: NDArray[np.float64], digits: int, min_exponent: int) -> NDArray[np.float64]:
    """Round to ``digits`` significant binary digits, and to multiples of ``2**min_exponent``."""
    _, exponent = np.frexp(values)
    unit = np.maximum(exponent - digits, min_exponent)
    rounded: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    return rounded


def bf16_decode(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the values of bf16 codes, same shape."""
    return (codes.astype(np.uint32) << 16).view(np.float32)


def bf16_encode(values: ArrayLike) -> NDArray[np.uint16]:
    """Return the nearest bf16 codes, same shape; what is too large becomes infinite."""
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = np.asarray(_on_grid(exact, digits=8, min_exponent=-133), dtype=np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)


def f8_decode(codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the values of f8e4m3 codes, same shape."""
    return F8_VALUES.take(codes)


def f8_encode(values: ArrayLike) -> NDArray[np.uint8]:
    """Return the nearest f8e4m3 codes, same shape; NaN if it rounds to more than 448."""
    exact = np.asarray(values, dtype=np.float64)
    magnitude = np.abs(_on_grid(exact, digits=4, min_exponent=-9))
    code = np.searchsorted(F8_VALUES[:127], magnitude)  # NaN and all beyond 448 end at 127
    return (code + np.where(np.signbit(exact), 128, 0)).astype(np.uint8)


def f4_encode(values: ArrayLike) -> NDArray[np.uint8]:
    """Return the nearest f4e2m1 codes, one a byte, same shape; magnitudes above 6 become 6.

    Raises:
        ValueError: a value is NaN, which the format cannot say.
    """
    exact = np.asarray(values, dtype=np.float64)
    if np.isnan(exact).any():
        raise ValueError("f4e2m1 has no NaN: encode finite values only")
    magnitude = np.abs(_on_grid(np.clip(exact, -6, 6), digits=2, min_exponent=-1))
    code = np.searchsorted(F4_VALUES[:8], magnitude)
    return (code + np.where(np.signbit(exact), 8, 0)).astype(np.uint8)


def f4_pack(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack f4 codes ``(..., n)`` as bytes ``(..., n/2)``; the low nibble is the even index."""
    high = np.left_shift(codes[..., 1::2], 4, dtype=np.uint8)
    return np.bitwise_or(codes[..., 0::2], high, dtype=np.uint8)


def f4_unpack(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undo `f4_pack`: ``(..., n/2)`` bytes to ``(..., n)`` codes."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1)
    return codes.reshape(*packed.shape[:-1], -1)
