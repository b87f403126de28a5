"""The numerics of the cpu target: formats, kernels, reference, fixtures, baselines."""

import math
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from targets.cpu.baselines import baseline
from targets.cpu.build import build
from targets.cpu.check import check
from targets.cpu.header import header, task
from targets.gemma4 import formats, reference
from targets.gemma4.fixtures import RECIPES, fixture
from targets.gemma4.kernels import EPS, KERNELS, MXFP4_KERNELS, PRESETS, Kernel, kernel, sized
from targets.protocol import Built, TargetError

TINY = {"H": 32, "L": 64, "NS": 2, "GS": 2, "DS": 16, "QS": 64, "PS": 32, "TS": 4, "E": 16}
SIZES = pytest.mark.parametrize("name", KERNELS)
EVERY = pytest.mark.parametrize("name", [*KERNELS, *MXFP4_KERNELS])
INDICES = pytest.mark.parametrize("index", range(len(RECIPES)))


def stored(k: Kernel, values: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[Any]]:
    """Round a reference to the outputs of a perfect launch."""
    return {b.name: formats.bf16_encode(values[b.name]) for b in k.buffers if b.name in values}


# ---- formats ---------------------------------------------------------------------------------


def brute_f8(code: int) -> float:
    sign = -1.0 if code & 128 else 1.0
    exponent, mantissa = (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return float(sign * (mantissa / 8) * 2.0**-6)
    return float(sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def test_every_f8_code_decodes_by_the_definition() -> None:
    """The table is the format: one wrong entry would be taught to every kernel."""
    np.testing.assert_array_equal(formats.F8_VALUES, [brute_f8(code) for code in range(256)])
    assert formats.F8_VALUES.max(where=np.isfinite(formats.F8_VALUES), initial=0.0) == 448.0


def test_every_bf16_code_survives_decoding_and_encoding() -> None:
    """Negative zero included; NaN has many codes and is left out."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    codes = codes[~np.isnan(formats.bf16_decode(codes))]

    np.testing.assert_array_equal(formats.bf16_encode(formats.bf16_decode(codes)), codes)


def test_a_tie_goes_to_the_even_code_and_the_rest_to_the_nearest() -> None:
    """Codes of one sign are ordered like their values, so even codes have even mantissas."""
    exact = formats.bf16_decode(np.arange(0x7F80, dtype=np.uint16)).astype(np.float64)
    middle = (exact[:-1] + exact[1:]) / 2
    low = np.arange(len(middle))

    np.testing.assert_array_equal(formats.bf16_encode(middle), low + low % 2)
    np.testing.assert_array_equal(formats.bf16_encode(np.nextafter(middle, 0.0)), low)
    np.testing.assert_array_equal(formats.bf16_encode(np.nextafter(middle, np.inf)), low + 1)


def test_what_is_out_of_range_becomes_infinite() -> None:
    """As in the hardware; NaN stays NaN."""
    assert np.isposinf(formats.bf16_decode(formats.bf16_encode(3.4e38)))
    assert np.isnan(formats.bf16_decode(formats.bf16_encode(math.nan)))


# ---- kernels and texts -----------------------------------------------------------------------


def test_weight_bytes_are_those_of_the_published_kernels() -> None:
    """The bound is computed from them."""
    assert [kernel(name, "full").weight_bytes for name in KERNELS] == [
        31_457_280,
        15_728_640,
        99_532_800,
    ]
    assert [kernel(name, "full").weight_bytes for name in MXFP4_KERNELS] == [16_711_680, 8_355_840]


def test_an_unknown_kernel_or_preset_is_refused_with_the_known_ones() -> None:
    """The name comes from a campaign file: its author needs the list."""
    with pytest.raises(TargetError, match="decoder_feedforward"):
        kernel("feedforward", "full")
    with pytest.raises(TargetError, match="small"):
        kernel("decoder_feedforward", "large")
    with pytest.raises(TargetError, match="decoder_feedforward"):
        baseline("feedforward")


@SIZES
def test_a_kernel_is_a_value(name: str) -> None:
    """It is a key of caches and crosses processes."""
    k = kernel(name, "small")

    assert pickle.loads(pickle.dumps(k)) == k
    assert hash(k) == hash(kernel(name, "small"))


@SIZES
@pytest.mark.parametrize("preset", PRESETS)
def test_the_texts_name_every_buffer_and_size(name: str, preset: str) -> None:
    """An author sees nothing else."""
    k = kernel(name, preset)
    text = header(k)

    assert text in task(k)
    for buffer in k.buffers:
        assert f"*{buffer.name};" in text
    for dim, size in k.dims.items():
        assert f"#define {dim} {size}\n" in text


# ---- reference -------------------------------------------------------------------------------


def naive_norm(t: list[float]) -> list[float]:
    root = math.sqrt(sum(v * v for v in t) / len(t) + EPS)
    return [v / root for v in t]


def naive_f8(codes: NDArray[Any], x: list[float]) -> list[float]:
    return [sum(brute_f8(int(c)) * v for c, v in zip(row, x, strict=True)) for row in codes]


def brute_e8m0(code: int) -> float:
    return 2.0 ** (code - 127)


def naive_f4(
    codes: NDArray[Any],
    scales: NDArray[Any],
    x: list[float],
    block: int = 16,
    value: Callable[[int], float] = brute_f8,
) -> list[float]:
    rows = []
    for row, scale in zip(codes, scales, strict=True):
        total = 0.0
        for j, v in enumerate(x):
            code = int(row[j // 2]) >> 4 if j % 2 else int(row[j // 2]) & 15
            total += float(formats.F4_VALUES[code]) * value(int(scale[j // block])) * v
        rows.append(total)
    return rows


def floats(codes: NDArray[Any]) -> list[float]:
    return [float(v) for v in formats.bf16_decode(codes)]


def naive_rows(k: Kernel, a: Mapping[str, NDArray[Any]], name: str, x: list[float]) -> list[float]:
    if k.name in MXFP4_KERNELS:
        return naive_f4(a[f"w{name}"], a[f"s{name}"], x, 32, brute_e8m0)
    sums = naive_f8(a[f"w{name}"], x)
    return [s * v for s, v in zip(floats(a[f"s{name}"]), sums, strict=True)]


def naive_qkv(k: Kernel, a: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    width, position = k.dims["DS"], int(a["offsets"][0]) // (2 * k.dims["DS"])
    cos, sin = floats(a["cos"][position]), floats(a["sin"][position])
    normed = naive_norm(floats(a["x"]))
    x = [u * v for u, v in zip(normed, floats(a["w_rms"]), strict=True)]

    def heads(name: str, weight: list[float] | None) -> list[float]:
        t = naive_rows(k, a, name, x)
        out: list[float] = []
        for start in range(0, len(t), width):
            head = naive_norm(t[start : start + width])
            if weight is not None:
                head = [u * v for u, v in zip(head, weight, strict=True)]
                head = [
                    head[i] * cos[i] + head[(i + width // 2) % width] * sin[i] for i in range(width)
                ]
            out += head
        return out

    return {
        "q_out": heads("q", floats(a["q_rms"])),
        "k_cache": heads("k", floats(a["k_rms"])),
        "v_cache": heads("v", None),
    }


def naive_output(k: Kernel, a: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    y = naive_norm(naive_rows(k, a, "o", floats(a["x"])))
    terms = zip(floats(a["residual"]), y, floats(a["w_post"]), strict=True)
    return {"residual": [r + v * w for r, v, w in terms]}


def naive_feedforward(k: Kernel, a: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    residual = floats(a["residual"])
    x = [u * v for u, v in zip(naive_norm(residual), floats(a["w_pre"]), strict=True)]
    g_up, g_gate, g_down = (float(g) for g in a["globals"])
    up = naive_f4(a["w_up"], a["s_up"], x)
    gate = [g_gate * v for v in naive_f4(a["w_gate"], a["s_gate"], x)]
    h = [g_up * u * g * (1 + math.erf(g / math.sqrt(2))) / 2 for u, g in zip(up, gate, strict=True)]
    y = naive_norm([g_down * v for v in naive_f4(a["w_down"], a["s_down"], h)])
    terms = zip(residual, y, floats(a["w_post"]), strict=True)
    return {"residual": [(r + v * w) * floats(a["layer_scalar"])[0] for r, v, w in terms]}


NAIVE = {
    "sliding_project_qkv": naive_qkv,
    "sliding_attention_output": naive_output,
    "decoder_feedforward": naive_feedforward,
    "sliding_project_qkv_mxfp4": naive_qkv,
    "sliding_attention_output_mxfp4": naive_output,
}


@EVERY
@INDICES
def test_the_reference_is_the_mathematics_written_as_loops(name: str, index: int) -> None:
    """The reference decodes by table in blocks; the loops decode from the definition."""
    k = sized(name, "tiny", TINY)
    inputs = fixture(k, 3, index).inputs
    values = reference.expected(k, inputs)

    for buffer, plain in NAIVE[name](k, inputs).items():
        row = reference.cache_row(k, inputs) if buffer.endswith("cache") else ...
        np.testing.assert_allclose(values[buffer][row], plain, rtol=1e-9, atol=1e-12)


# ---- fixtures --------------------------------------------------------------------------------


@EVERY
@INDICES
def test_a_fixture_fills_every_buffer_and_repeats(name: str, index: int) -> None:
    """Two processes must draw the same inputs from the same numbers."""
    k = kernel(name, "small")
    first, again = fixture(k, 5, index), fixture(k, 5, index)

    filled = [b for b in k.buffers if b.part in ("in", "weight", "inout")]
    assert set(first.inputs) == {b.name for b in filled}
    for buffer in filled:
        array = first.inputs[buffer.name]
        assert (array.shape, array.dtype) == (buffer.storage_shape, buffer.storage)
        np.testing.assert_array_equal(array, again.inputs[buffer.name])
        if buffer.dtype == "f8e4m3":
            assert not np.isnan(formats.F8_VALUES.take(array)).any()
        if buffer.dtype == "bf16":
            assert np.isfinite(formats.bf16_decode(array)).all()


@EVERY
def test_another_seed_gives_other_inputs(name: str) -> None:
    """A held-out fixture is one that nobody has seen."""
    k = kernel(name, "small")
    first, other = fixture(k, 5, 0).inputs, fixture(k, 6, 0).inputs

    assert not any(np.array_equal(first[n], other[n]) for n in first if n not in ("cos", "sin"))


@INDICES
def test_the_position_has_wrapped_around_the_ring(index: int) -> None:
    """A kernel that takes the position for the row must not pass."""
    k = kernel("sliding_project_qkv", "small")
    offsets = fixture(k, 5, index).inputs["offsets"]
    position = int(offsets[0]) // (2 * k.dims["DS"])

    assert k.dims["TS"] < position < k.dims["E"]
    assert reference.cache_row(k, {"offsets": offsets}) == position % k.dims["TS"]


# ---- margin ----------------------------------------------------------------------------------


@EVERY
@INDICES
def test_a_perfect_launch_leaves_most_of_the_tolerance(name: str, index: int) -> None:
    """What the rounding of the outputs uses is 0.4 at most: half a bf16 step over 1 per cent."""
    k = kernel(name, "small")
    inputs = fixture(k, 1, index).inputs
    values = reference.expected(k, inputs)
    worst, detail = reference.margin(k, inputs, values, stored(k, values))

    assert detail == ""
    assert worst is not None
    assert 0.0 < worst < 0.4


@EVERY
def test_one_wrong_element_is_seen(name: str) -> None:
    """The margin is a maximum, not a mean."""
    k = sized(name, "tiny", TINY)
    inputs = fixture(k, 1, 0).inputs
    values = reference.expected(k, inputs)
    outputs = stored(k, values)
    last = next(iter(outputs))
    outputs[last][-1] = formats.bf16_encode(values[last][-1] + 1.0)
    worst, _ = reference.margin(k, inputs, values, outputs)

    assert worst is not None
    assert worst > 1.0


@pytest.mark.parametrize("code", [0x7FC0, 0x7F80, 0xFF80])
def test_an_output_that_is_not_finite_is_named(code: int) -> None:
    """NaN compares as neither small nor large, so it must not reach the comparison."""
    k = sized("sliding_attention_output", "tiny", TINY)
    inputs = fixture(k, 1, 0).inputs
    values = reference.expected(k, inputs)
    outputs = stored(k, values)
    outputs["residual"][7] = code

    assert reference.margin(k, inputs, values, outputs) == (None, "residual[7] is not finite")


def test_a_touched_cache_row_is_named() -> None:
    """One bit in another row is another token's key, however small the error."""
    k = sized("sliding_project_qkv", "tiny", TINY)
    inputs = fixture(k, 1, 0).inputs
    values = reference.expected(k, inputs)
    outputs = stored(k, values)
    row = reference.cache_row(k, inputs)
    other = (row + 1) % TINY["TS"]
    outputs["v_cache"][other, 5] ^= 1
    worst, detail = reference.margin(k, inputs, values, outputs)

    assert worst is None
    assert detail == f"v_cache[{other}, 5] changed; only row {row} may be written"


def in_8_bits(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 255 levels with one scale."""
    step = np.abs(x).max() / 127
    return np.asarray(np.rint(x / step) * step)


def without_last_16(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop one block of terms."""
    return np.concatenate([x[:-16], np.zeros(16)])


@EVERY
@pytest.mark.parametrize("spoil", [in_8_bits, without_last_16])
def test_cheaper_arithmetic_fails(
    name: str, spoil: Callable[[Any], NDArray[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tolerance must bite, or the search finds kernels that are fast because they are wrong."""
    k = kernel(name, "small")
    inputs = fixture(k, 1, 0).inputs
    values = reference.expected(k, inputs)
    f8, f4 = reference.f8_matvec, reference.f4_matvec
    monkeypatch.setattr(reference, "f8_matvec", lambda codes, x: f8(codes, spoil(x)))
    monkeypatch.setattr(reference, "f4_matvec", lambda codes, s, x, *v: f4(codes, s, spoil(x), *v))
    worst, _ = reference.margin(k, inputs, values, stored(k, reference.expected(k, inputs)))

    assert worst is not None
    assert worst > 1.0


@EVERY
def test_the_small_amplitude_sees_a_missing_eps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At amplitude 1 a norm without EPS would pass."""
    k = kernel(name, "small")
    index = next(i for i, recipe in enumerate(RECIPES) if recipe.amplitude < 0.01)
    inputs = fixture(k, 1, index).inputs
    values = reference.expected(k, inputs)
    monkeypatch.setattr(reference, "EPS", 0.0)
    worst, _ = reference.margin(k, inputs, values, stored(k, reference.expected(k, inputs)))

    assert worst is not None
    assert worst > 1.0


# ---- baselines -------------------------------------------------------------------------------


@pytest.mark.device
@SIZES
def test_the_baseline_is_correct_on_every_fixture(name: str) -> None:
    """All speed-ups are measured from it, and it is every search's first best version."""
    k = kernel(name, "small")
    built = build(k, baseline(name))
    assert isinstance(built, Built)
    assert built.warnings == ""

    results = check(k, built.artifact, range(len(RECIPES)))
    assert [r.fixture for r in results if r.margin is None or r.margin > 0.5] == []
    assert len(results) == len(RECIPES)
