"""Number formats of the language."""

from collections.abc import Iterable, Mapping
from typing import Final

BITS: Final[Mapping[str, int]] = {
    "f4_e2": 4,
    "i4": 4,
    "u8": 8,
    "i8": 8,
    "f8_e4": 8,
    "f8_e5": 8,
    "bool": 8,
    "u16": 16,
    "i16": 16,
    "f16": 16,
    "bf16": 16,
    "u32": 32,
    "i32": 32,
    "f32": 32,
}
"""Those that the chip computes with; the language's 64-bit ones pass its evaluator, and no more."""


def n_bytes(dtype: str, sizes: Iterable[int]) -> int:
    """Return what a dense tensor takes."""
    bits = BITS[dtype]
    for size in sizes:
        bits *= size
    return -(-bits // 8)
