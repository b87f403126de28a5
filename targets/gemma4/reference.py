"""What the kernels must compute, in float64, and how far an output is from it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from targets.gemma4.formats import E8M0_VALUES, F4_VALUES, F8_VALUES, bf16_decode
from targets.gemma4.kernels import EPS, Buffer, Kernel

Vector = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]

_BLOCK_BYTES: Final = 1 << 20
"""Decoded weights held at a time: they stay in the cache, and memory stays small."""
_CACHES: Final = ("k_cache", "v_cache")
_F4_PAIRS: Final = F4_VALUES[np.arange(256) & 15] + 1j * F4_VALUES[np.arange(256) >> 4]
"""Both values of every packed byte, complex128[256]; two neighbours in memory once viewed."""


def _row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    step = max(1, _BLOCK_BYTES // (8 * n_columns))
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def f8_matvec(codes: NDArray[np.uint8], x: Vector) -> Vector:
    """Multiply f8e4m3 weights ``(rows, columns)`` by ``x`` (columns)."""
    blocks = _row_blocks(len(codes), len(x))
    return np.concatenate([F8_VALUES.take(codes[rows]) @ x for rows in blocks])


def f4_matvec(
    codes: NDArray[np.uint8], scales: NDArray[np.uint8], x: Vector, values: Vector = F8_VALUES
) -> Vector:
    """Multiply block-scaled f4e2m1 weights by ``x``.

    Args:
        codes: ``(rows, columns/2)``, two codes a byte.
        scales: ``(rows, blocks)``, one for every block of consecutive weights of a row.
        x: ``(columns,)``.
        values: of the codes in ``scales``, f8e4m3 unless given.
    """
    products = []
    for rows in _row_blocks(len(codes), len(x)):
        weights = _F4_PAIRS.take(codes[rows]).view(np.float64)
        blocked = weights.reshape(*scales[rows].shape, -1)
        blocked *= values.take(scales[rows])[:, :, None]
        products.append(weights @ x)
    return np.concatenate(products)


def rmsnorm(x: Vector) -> Vector:
    """Divide ``x`` by the root of its mean square plus EPS, along the last axis."""
    normed: Vector = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS)
    return normed


def gelu(x: Vector) -> Vector:
    """Return ``x`` times the normal distribution function at ``x`` (the erf form)."""
    activated: Vector = 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))
    return activated


def cache_row(kernel: Kernel, inputs: Arrays) -> int:
    """Return the row of the key and value caches that sliding_project_qkv writes."""
    return int(inputs["offsets"][1]) // (2 * kernel.dims["PS"])


def expected(kernel: Kernel, inputs: Arrays) -> dict[str, Vector]:
    """Return every out and inout buffer as the mathematics says, before any rounding.

    Args:
        kernel: which mathematics and sizes.
        inputs: storage arrays of every in, weight and inout buffer.
    """
    return _MATHEMATICS[kernel.name](kernel, inputs)


def _wide(codes: NDArray[np.uint16]) -> Vector:
    return bf16_decode(codes).astype(np.float64)


def _rows(name: str, inputs: Arrays, x: Vector) -> Vector:
    """Multiply a matrix with scales of rows (f8 weights) or of blocks (MXFP4) by ``x``."""
    weights, scales = inputs[f"w{name}"], inputs[f"s{name}"]
    if scales.ndim == 1:
        return _wide(scales) * f8_matvec(weights, x)
    return f4_matvec(weights, scales, x, E8M0_VALUES)


def _project_qkv(kernel: Kernel, inputs: Arrays) -> dict[str, Vector]:
    width = kernel.dims["DS"]
    position = int(inputs["offsets"][0]) // (2 * width)
    cos, sin = _wide(inputs["cos"][position]), _wide(inputs["sin"][position])
    x = rmsnorm(_wide(inputs["x"])) * _wide(inputs["w_rms"])

    def heads(name: str) -> Vector:
        return rmsnorm(_rows(name, inputs, x).reshape(-1, width))

    def rotated(t: Vector) -> Vector:
        return (t * cos + np.roll(t, width // 2, axis=-1) * sin).ravel()

    row = cache_row(kernel, inputs)
    k_cache, v_cache = _wide(inputs["k_cache"]), _wide(inputs["v_cache"])
    k_cache[row] = rotated(heads("k") * _wide(inputs["k_rms"]))
    v_cache[row] = heads("v").ravel()
    q_out = rotated(heads("q") * _wide(inputs["q_rms"]))
    return {"q_out": q_out, "k_cache": k_cache, "v_cache": v_cache}


def _attention_output(kernel: Kernel, inputs: Arrays) -> dict[str, Vector]:
    rows = rmsnorm(_rows("o", inputs, _wide(inputs["x"])))
    return {"residual": _wide(inputs["residual"]) + rows * _wide(inputs["w_post"])}


def _feedforward(kernel: Kernel, inputs: Arrays) -> dict[str, Vector]:
    residual = _wide(inputs["residual"])
    scale_up, scale_gate, scale_down = inputs["globals"].astype(np.float64)
    x = rmsnorm(residual) * _wide(inputs["w_pre"])
    up = scale_up * f4_matvec(inputs["w_up"], inputs["s_up"], x)
    gate = scale_gate * f4_matvec(inputs["w_gate"], inputs["s_gate"], x)
    down = scale_down * f4_matvec(inputs["w_down"], inputs["s_down"], up * gelu(gate))
    y = rmsnorm(down) * _wide(inputs["w_post"])
    return {"residual": (residual + y) * _wide(inputs["layer_scalar"])}


_MATHEMATICS: Final[Mapping[str, Callable[[Kernel, Arrays], dict[str, Vector]]]] = {
    "sliding_project_qkv": _project_qkv,
    "sliding_attention_output": _attention_output,
    "decoder_feedforward": _feedforward,
    "sliding_project_qkv_mxfp4": _project_qkv,
    "sliding_attention_output_mxfp4": _attention_output,
}


def margin(
    kernel: Kernel, inputs: Arrays, expected: Mapping[str, Vector], outputs: Arrays
) -> tuple[float | None, str]:
    """Compare a launch's outputs with the reference.

    Args:
        kernel: whose tolerance and buffers.
        inputs: storage arrays before the launch.
        expected: from `expected` on the same inputs.
        outputs: storage arrays of every out and inout buffer after the launch.

    Returns:
        The largest ``|error| / (atol + rtol |reference|)`` and "", or None and the first element
        that is not finite, or that belongs to a cache row that must not change.
    """
    worst = 0.0
    for buffer in kernel.buffers:
        if buffer.part not in ("out", "inout"):
            continue
        if fault := _fault(kernel, buffer, inputs, outputs[buffer.name]):
            return None, fault
        error = np.abs(bf16_decode(outputs[buffer.name]) - expected[buffer.name])
        tolerance = kernel.atol + kernel.rtol * np.abs(expected[buffer.name])
        worst = max(worst, float((error / tolerance).max()))
    return worst, ""


def _fault(kernel: Kernel, buffer: Buffer, inputs: Arrays, output: NDArray[Any]) -> str:
    """Return why ``output`` cannot be compared, or ""."""
    if buffer.name in _CACHES:
        row = cache_row(kernel, inputs)
        touched = output != inputs[buffer.name]
        touched[row] = False
        if touched.any():
            return f"{_place(buffer, touched)} changed; only row {row} may be written"
    infinite = ~np.isfinite(bf16_decode(output))
    if infinite.any():
        return f"{_place(buffer, infinite)} is not finite"
    return ""


def _place(buffer: Buffer, wrong: NDArray[np.bool_]) -> str:
    index = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return f"{buffer.name}[{', '.join(str(i) for i in index)}]"
