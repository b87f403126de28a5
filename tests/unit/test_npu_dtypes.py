"""Number formats of the NPU, against tables made from their definitions."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.npu import dtypes
from sim.npu.program import DType

# Bits of exponent and mantissa, exponent bias, largest finite value.
DEFINITIONS: dict[DType, tuple[int, int, int, float]] = {
    "f4e2m1": (2, 1, 1, 6.0),
    "f8e4m3": (4, 3, 7, 448.0),
    "bf16": (8, 7, 127, float.fromhex("0x1.fep127")),
}
FORMATS = pytest.mark.parametrize("dtype", DEFINITIONS)


def magnitudes(dtype: DType) -> NDArray[np.float64]:
    """All values of a format that are finite and not negative, in the order of their codes."""
    n_exponent, n_mantissa, bias, largest = DEFINITIONS[dtype]
    values = []
    for code in range(1 << (n_exponent + n_mantissa)):
        exponent, fraction = code >> n_mantissa, (code & ((1 << n_mantissa) - 1)) / 2**n_mantissa
        lead = 1.0 if exponent else 0.0
        values.append(math.ldexp(lead + fraction, max(exponent, 1) - bias))
    return np.array([value for value in values if value <= largest])


def test_every_code_is_worth_what_the_format_says() -> None:
    """The tables are the formats: a wrong entry would be wrong in all kernels alike."""
    f4, f8 = magnitudes("f4e2m1"), np.append(magnitudes("f8e4m3"), np.nan)

    np.testing.assert_array_equal(dtypes.F4_VALUES, np.append(f4, -f4))
    np.testing.assert_array_equal(dtypes.F8_VALUES, np.append(f8, -f8))


@FORMATS
def test_a_value_of_the_format_stays(dtype: DType) -> None:
    """Rounding twice is rounding once."""
    values = magnitudes(dtype).astype(np.float32)

    np.testing.assert_array_equal(dtypes.round_to(-values, dtype), -values)
    assert np.signbit(dtypes.round_to(np.array([-0.0]), dtype)).all()


@FORMATS
def test_a_tie_goes_to_the_even_code_and_the_rest_to_the_nearest(dtype: DType) -> None:
    """Subnormals included; codes of one sign are ordered like their values."""
    values = magnitudes(dtype)
    middle = (values[:-1] + values[1:]) / 2
    low = np.arange(len(middle))

    for given, code in (
        (middle, low + low % 2),
        (np.nextafter(middle, 0.0), low),
        (np.nextafter(middle, np.inf), low + 1),
    ):
        np.testing.assert_array_equal(dtypes.round_to(given, dtype), values[code])


def test_what_is_too_large_saturates_or_overflows() -> None:
    """As on the chip: f8 has no infinity. NaN stays NaN in all formats."""
    large = np.array([1e9, -np.inf, np.nan], np.float32)

    np.testing.assert_array_equal(dtypes.round_to(large, "f8e4m3"), [448, -448, np.nan])
    np.testing.assert_array_equal(dtypes.round_to(large, "f4e2m1"), [6, -6, np.nan])
    with np.errstate(over="ignore"):
        overflown = dtypes.round_to(np.array([3.4e38, -np.inf, np.nan], np.float32), "bf16")
    np.testing.assert_array_equal(overflown, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(("n", "error"), [(1, 2.0**-4), (2, 2.0**-9), (3, 2.0**-14)])
def test_the_first_piece_keeps_four_bits_and_each_other_adds_five(n: int, error: float) -> None:
    """The fifth is its sign: 2 pieces are as good as bf16, 1 is far beyond a kernel's tolerance."""
    values = np.random.default_rng(1).uniform(0.25, 1.0, 4_096).astype(np.float32)

    worst = np.abs(dtypes.in_pieces(values, n) / values - 1).max()

    assert error / 2 < worst <= error


def test_pieces_scale_with_the_largest_value() -> None:
    """A power of two in front changes nothing; neither does a tensor of zeros fail."""
    values = np.random.default_rng(2).standard_normal(256).astype(np.float32)

    scaled = dtypes.in_pieces(values * np.float32(2.0**40), 2)

    np.testing.assert_array_equal(scaled, dtypes.in_pieces(values, 2) * np.float32(2.0**40))
    np.testing.assert_array_equal(dtypes.in_pieces(np.zeros(4, np.float32), 2), np.zeros(4))
    assert np.isnan(dtypes.in_pieces(np.array([1, np.inf], np.float32), 3)).all()


def test_the_first_piece_is_f8_of_the_scaled_value() -> None:
    """The largest value lies in [128, 256) behind the scaling."""
    values = np.array([1.9, 0.3, 0.001, -1.1], np.float32)

    expected = dtypes.round_to(values * np.float32(128), "f8e4m3") / 128

    np.testing.assert_array_equal(dtypes.in_pieces(values, 1), expected)


def test_codes_in_hbm_are_read_as_they_are_stored() -> None:
    """Two f4 codes a byte, the low half first."""
    packed = np.array([[0x21, 0xF4]], np.uint8)
    wide: Any = dtypes.load(packed, "f4e2m1", (1, 4))

    np.testing.assert_array_equal(dtypes.dense(wide), [[0.5, 1.0, 2.0, -6.0]])
    np.testing.assert_array_equal(dtypes.rows(wide, 4, slice(0, 1)), [[0.5, 1.0, 2.0, -6.0]])
    values = dtypes.round_to(np.linspace(-3, 3, 7, dtype=np.float32), "bf16")
    codes = dtypes.store(values, "bf16")
    np.testing.assert_array_equal(dtypes.dense(dtypes.load(codes, "bf16", (7,))), values)
