"""Inputs to check a kernel on: several distributions and amplitudes, never only easy values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from targets.gemma4.formats import F4_VALUES, F8_VALUES, bf16_encode
from targets.gemma4.kernels import Kernel

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


@dataclass(frozen=True)
class Fixture:
    """One set of inputs."""

    label: str
    """Distribution and amplitude, for reports."""
    inputs: dict[str, NDArray[Any]]
    """Storage arrays of every in, weight and inout buffer; some are read-only."""


class Exponents(NamedTuple):
    """Exponent fields that f8e4m3 codes are drawn from, both ends included."""

    low: int
    high: int


@dataclass(frozen=True)
class Recipe:
    """How the inputs of one fixture are drawn."""

    label: str
    draw: Draw
    """Activations before the amplitude, of about unit size."""
    amplitude: float
    """Of the activations, and of every product that goes into a final norm."""
    weights: Exponents
    """Of f8 weights; field 0 is subnormal."""
    scales: Exponents
    """Of the f8 block scales of f4 weights; e8m0 scales are spread as widely."""


def _normal(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.standard_normal(n)


def _uniform(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.uniform(-1.0, 1.0, n)


def _heavy_tail(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.standard_t(2.0, n)


def _offset(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return 1.0 + 0.5 * rng.standard_normal(n)


RECIPES: Final = (
    Recipe("normal, amplitude 1", _normal, 1.0, Exponents(7, 14), Exponents(8, 10)),
    Recipe(
        "heavy tail, amplitude 1, small codes", _heavy_tail, 1.0, Exponents(0, 3), Exponents(0, 3)
    ),
    Recipe("normal, amplitude 0.001", _normal, 0.001, Exponents(7, 14), Exponents(8, 10)),
    Recipe(
        "uniform, amplitude 16, large codes", _uniform, 16.0, Exponents(8, 15), Exponents(8, 15)
    ),
    Recipe("uniform, amplitude 1", _uniform, 1.0, Exponents(7, 14), Exponents(8, 10)),
    Recipe("offset normal, amplitude 1", _offset, 1.0, Exponents(7, 14), Exponents(8, 10)),
)
"""In the order of a fixture's index, which wraps around."""


def fixture(kernel: Kernel, seed: int, index: int) -> Fixture:
    """Draw the inputs of a launch; the same arguments give the same bits.

    Args:
        kernel: whose buffers.
        seed: of all values.
        index: picks the recipe.
    """
    recipe = RECIPES[index % len(RECIPES)]
    key = [seed, index, list(_DRAWS).index(kernel.name)]
    rng = np.random.Generator(np.random.SFC64(key))
    drawn = _DRAWS[kernel.name](kernel, recipe, rng)
    return Fixture(recipe.label, drawn)


def _project_qkv(
    kernel: Kernel, recipe: Recipe, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    d = kernel.dims
    cos, sin = _rope_tables(d["E"], d["DS"])
    position = int(rng.integers(d["TS"] + 1, d["E"]))
    shape = (d["TS"], d["PS"])
    weights = partial(_weights, kernel, recipe, rng)
    scales = partial(_scales, kernel, recipe, rng, recipe.amplitude / np.sqrt(d["H"]))
    return {
        "x": bf16_encode(recipe.amplitude * recipe.draw(rng, d["H"])),
        "w_rms": bf16_encode(rng.uniform(0.75, 1.25, d["H"])),
        "wq": weights("wq"),
        "wk": weights("wk"),
        "wv": weights("wv"),
        "sq": scales("sq"),
        "sk": scales("sk"),
        "sv": scales("sv"),
        "q_rms": bf16_encode(rng.uniform(0.5, 4.0, d["DS"])),
        "k_rms": bf16_encode(rng.uniform(0.5, 4.0, d["DS"])),
        "cos": cos,
        "sin": sin,
        "offsets": np.array([position * d["DS"] * 2, position % d["TS"] * d["PS"] * 2], np.int64),
        "k_cache": bf16_encode(rng.standard_normal(shape, np.float32)),
        "v_cache": bf16_encode(rng.standard_normal(shape, np.float32)),
    }


def _attention_output(
    kernel: Kernel, recipe: Recipe, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    d = kernel.dims
    return {
        "x": bf16_encode(recipe.amplitude * recipe.draw(rng, d["QS"])),
        "wo": _weights(kernel, recipe, rng, "wo"),
        "so": _scales(kernel, recipe, rng, 1.0 / np.sqrt(d["QS"]), "so"),
        "w_post": bf16_encode(rng.uniform(0.5, 4.0, d["H"])),
        "residual": bf16_encode(rng.standard_normal(d["H"])),
    }


def _feedforward(
    kernel: Kernel, recipe: Recipe, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    d = kernel.dims
    h, l = d["H"], d["L"]  # noqa: E741
    weight_rms = _RMS_F4 * _rms_f8(recipe.scales)
    sizes = weight_rms * np.sqrt([h, h, l]) / [1.0, 1.0, recipe.amplitude]
    return {
        "residual": bf16_encode(recipe.amplitude * recipe.draw(rng, h)),
        "w_pre": bf16_encode(rng.uniform(0.75, 1.25, h)),
        "w_post": bf16_encode(rng.uniform(0.75, 1.25, h)),
        "w_up": _bytes(rng, (l, h // 2)),
        "w_gate": _bytes(rng, (l, h // 2)),
        "w_down": _bytes(rng, (h, l // 2)),
        "s_up": _f8_codes(rng, (l, h // 16), recipe.scales) & 127,
        "s_gate": _f8_codes(rng, (l, h // 16), recipe.scales) & 127,
        "s_down": _f8_codes(rng, (h, l // 16), recipe.scales) & 127,
        "globals": (rng.uniform(0.5, 2.0, 3) / sizes).astype(np.float32),
        "layer_scalar": bf16_encode(rng.uniform(0.375, 0.75, 1)),
    }


_DRAWS: Final = {
    "sliding_project_qkv": _project_qkv,
    "sliding_attention_output": _attention_output,
    "decoder_feedforward": _feedforward,
    "sliding_project_qkv_mxfp4": _project_qkv,
    "sliding_attention_output_mxfp4": _attention_output,
}


def _weights(
    kernel: Kernel, recipe: Recipe, rng: np.random.Generator, name: str
) -> NDArray[np.uint8]:
    buffer = kernel.buffer(name)
    if buffer.dtype == "f4e2m1":
        return _bytes(rng, buffer.storage_shape)
    return _f8_codes(rng, buffer.shape, recipe.weights)


def _scales(
    kernel: Kernel, recipe: Recipe, rng: np.random.Generator, size: float, name: str
) -> NDArray[Any]:
    """Draw the scales that give weights of about ``size``: of f8 rows, or of MXFP4 blocks."""
    shape = kernel.buffer(name).shape
    if len(shape) == 1:
        return bf16_encode(rng.uniform(0.0, 2.0 * size / _rms_f8(recipe.weights), shape))
    largest = 127 + round(np.log2(size / _RMS_F4))
    spread = recipe.scales.high - recipe.scales.low
    return rng.integers(largest - spread, largest + 1, shape, np.uint8)


def _bytes(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.frombuffer(rng.bytes(prod(shape)), np.uint8).reshape(shape)


def _codes_of(exponents: Exponents) -> NDArray[np.uint8]:
    """Return all codes with these exponent fields and both signs, without NaN."""
    codes = np.arange(256, dtype=np.uint8)
    field = (codes >> 3) & 15
    wanted = (field >= exponents.low) & (field <= exponents.high)
    chosen: NDArray[np.uint8] = codes[wanted & ((codes & 127) != 127)]
    return chosen


def _f8_codes(
    rng: np.random.Generator, shape: tuple[int, ...], exponents: Exponents
) -> NDArray[np.uint8]:
    table = np.resize(_codes_of(exponents), 256)
    codes: NDArray[np.uint8] = table.take(_bytes(rng, shape))
    return codes


_RMS_F4: Final = float(np.sqrt(np.mean(F4_VALUES**2)))


def _rms_f8(exponents: Exponents) -> float:
    return float(np.sqrt(np.mean(F8_VALUES[_codes_of(exponents)] ** 2)))


@lru_cache(maxsize=2)
def _rope_tables(n_rows: int, width: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return cos and sin ``(n_rows, width)``; theta 10000, sin's low half negated; read-only."""
    frequency = 10000.0 ** (-2.0 * np.arange(width // 2) / width)
    angle = np.arange(n_rows)[:, None] * frequency
    cos, sin = bf16_encode(np.cos(angle)), bf16_encode(np.sin(angle))
    tables = np.hstack([cos, cos]), np.hstack([sin ^ 0x8000, sin])
    for table in tables:
        table.setflags(write=False)
    return tables
