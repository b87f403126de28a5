"""The interpreter of the NPU: what a stage computes, and what a value depends on."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf

from sim.npu.compiler import compile_source
from sim.npu.dtypes import F4_VALUES, F8_VALUES, Coded
from sim.npu.interpret import Hang, Meaning, meaning, run
from sim.npu.kernels import SIGNATURES
from sim.npu.memo import Launch, Memo
from sim.npu.program import Program
from sim.npu.toolchain import V1_1
from sim.npu.values import Reading, contract
from targets.sim.fixtures import fixture
from tests.support.npu_launch import bf16, compiled, launched

DECLARED = """
kernel k
axis H = 256
axis R = 128
axis B = H / 16
axis T = 8
axis O = 2
hbm x: bf16[H] in
hbm g: bf16[H] in
hbm s: f32[T] in
hbm w: f8e4m3[R, H] weight
hbm q: f4e2m1[R, H] weight
hbm z: f8e4m3[R, B] weight
hbm rows: bf16[T, H] inout
hbm at: i64[O] in
hbm y: f32[R] out
hbm h: f32[H] out
hbm copied: bf16[H] out
hbm tmp: f32[R] scratch
hbm later: f32[H] scratch
place all = cluster copy:2, slices copy:64
place cut = cluster R:2, slices R:64
place grid = cluster R:2, slices R:16 H:4
place columns = cluster copy:2, slices copy:16 H:4
"""
RNG = np.random.default_rng(7)
X, G = (np.round(RNG.uniform(-16, 16, 256)) / 8 for _ in range(2))
CODES = RNG.integers(0, 120, (128, 256), np.uint8)
PACKED = RNG.integers(0, 256, (128, 128), np.uint8)
SCALES = RNG.integers(40, 70, (128, 16), np.uint8)
INPUTS: dict[str, NDArray[Any]] = {
    "x": bf16(X),
    "g": bf16(G),
    "s": np.arange(8, dtype=np.float32),
    "w": CODES,
    "q": PACKED,
    "z": SCALES,
    "rows": bf16(np.arange(8 * 256).reshape(8, 256) % 128),
    "at": np.array([512 * 3, 512 * 5], np.int64),
}
LOAD = "load x0, g0 from x, g to all\nv = sub g0 | commit vrf\n"


def output(body: str, name: str, **changed: NDArray[Any]) -> NDArray[Any]:
    return launched(DECLARED + body, {**INPUTS, **changed})[name]


# ---- stages ----------------------------------------------------------------------------------

F32 = np.float32
ROOT_HALF = F32(0.70710678)
ALU: dict[str, Callable[[Any, Any], Any]] = {
    "add v": lambda x, g: x + g,
    "sub v": lambda x, g: x - g,
    "max v": np.maximum,
    "mul v": lambda x, g: x * g,
    "div v": lambda x, g: x / g,
    "mul self": lambda x, g: x * x,
    "mul 1/3": lambda x, g: x * F32(1 / 3),
    "fma v 0.1": lambda x, g: x * g + F32(0.1),
    "fma self 1e-6 | rsqrt": lambda x, g: (
        1 / np.sqrt((x * x + F32(1e-6)).astype(np.float64))
    ).astype(F32),
    "exp": lambda x, g: np.exp(x.astype(np.float64)).astype(F32),
    "mul 0.70710678 | erf": lambda x, g: erf((x * ROOT_HALF).astype(np.float64)).astype(F32),
    "mul v | mul v | add self": lambda x, g: x * g * g + x,
}


@pytest.mark.parametrize("stages", ALU)
def test_vector_arithmetic_is_f32_to_the_bit(stages: str) -> None:
    """Functions are rounded once from f64; ``self`` is what entered the vector engine."""
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = ALU[stages](X.astype(F32), G.astype(F32))

    body = f"{LOAD}e = main x0 | {stages} | commit dm f32\nstore e to h"

    np.testing.assert_array_equal(output(body, "h"), expected)


def test_a_sum_is_rounded_once() -> None:
    """In f32, one by one, the small values would be lost."""
    values = np.full(256, 2.0**-9)
    values[0] = 2.0**15
    body = "load x0 from x to all\ne = main x0 | sum H | commit dm f32\n"
    body += "t = main x0 | mul 0 | add v | commit dm f32\nstore t to h"
    body = body.replace("t = ", "v = sub e | commit vrf\nt = ")

    total = output(body, "h", x=bf16(values))

    np.testing.assert_array_equal(total, F32(math.fsum(values)))


def test_a_contraction_is_exact_until_it_is_rounded() -> None:
    """f8 weights by x in two f8 terms, each product exact."""
    body = (
        "load x0 from x to columns\nt = main x0 | commit trf f8e4m3 pieces 2\n"
        "load w0 from w to grid\na = main w0 | contract t | reduce H | commit dm f32\nstore a to y"
    )
    weights = F8_VALUES[CODES]
    exact = [math.fsum(row) for row in weights * X]

    np.testing.assert_array_equal(output(body, "y"), np.array(exact, F32))


def test_a_block_scale_multiplies_the_sum_over_its_block() -> None:
    """Two f4 weights a byte, sixteen of them to a scale."""
    body = (
        "load x0 from x to all\nt = main x0 | commit trf f8e4m3 pieces 2\n"
        "load q0, z0 from q, z to cut\n"
        "b = main z0 | lookup bf16 | commit dm bf16\nc = sub b | commit vrf\n"
        "a = main q0 | lookup f8e4m3 | contract t scale c | commit dm f32\nstore a to y"
    )
    weights = F4_VALUES[np.stack([PACKED & 15, PACKED >> 4], axis=-1).reshape(128, 256)]
    blocks = (weights * X).reshape(128, 16, 16).sum(axis=-1) * F8_VALUES[SCALES]
    exact = [math.fsum(row) for row in blocks]

    np.testing.assert_array_equal(output(body, "y"), np.array(exact, F32))


def test_a_scale_without_rows_holds_for_all_of_them() -> None:
    """Its axes are some of the stream's."""
    stream = Coded(CODES, "f8e4m3", (128, 256))
    scale = np.arange(16, dtype=F32)
    ones = np.ones(256, F32)
    every = np.broadcast_to(scale, (128, 16))

    shared = contract(stream, (Reading((1,)), ones), (Reading((1,)), scale))

    whole = contract(stream, (Reading((1,)), ones), (Reading((0, 1)), every))
    np.testing.assert_array_equal(shared, whole)


def test_the_halves_of_an_axis_change_places() -> None:
    """As a rotary embedding needs it."""
    body = "load x0 from x to all\nb = main x0 roll H | commit dm bf16\nstore b to copied"

    np.testing.assert_array_equal(output(body, "copied"), np.roll(X, 128).astype(F32))


# ---- HBM -------------------------------------------------------------------------------------


def test_an_offset_counts_bytes() -> None:
    """Row 3 is read, row 5 written, and no other row changes."""
    body = "load r from rows[at[0]] to all\nb = main r | mul 2 | commit dm bf16\n"
    rows = output(body + "store b to rows[at[1]]", "rows")

    expected = np.arange(8 * 256).reshape(8, 256) % 128
    expected[5] = 2 * expected[3]
    np.testing.assert_array_equal(rows, expected)


def test_an_argument_that_is_not_stored_keeps_its_codes() -> None:
    """The check compares them all."""
    body = "load r from rows[2] to all\nstore r to copied"

    np.testing.assert_array_equal(output(body, "rows"), np.arange(8 * 256).reshape(8, 256) % 128)
    np.testing.assert_array_equal(output(body, "copied"), np.arange(512, 768) % 128)


@pytest.mark.parametrize("offset", [-1, 7 * 512 + 1])
def test_an_offset_out_of_its_tensor_hangs(offset: int) -> None:
    """The host sees an error of the device, not values."""
    what = meaning(compiled(DECLARED + "load r from rows[at[0]] to all\nstore r to copied"))
    inputs = {**INPUTS, "at": np.array([offset, 0], np.int64)}

    assert isinstance(run(what, Launch(inputs, 0), Memo()), Hang)


def test_a_load_sees_the_last_store_before_it() -> None:
    """In program order, whatever the engines do."""
    double = "c = main b | add v | commit dm f32\nstore c to later\nload d from later to all\n"
    body = f"{LOAD}b = main x0 | commit dm f32\nstore b to later\n{double}store d to h"

    np.testing.assert_array_equal(output(body, "h"), (X + G).astype(F32))


# ---- what a value depends on -----------------------------------------------------------------

EARLY = "load g0 from g to all\nv = sub g0 | commit vrf\n"
LATE = "load c from s[1] to all\nk = sub c | commit vrf\n"
MATVEC = f"""
load x0 from x to columns
t = main x0 | commit trf f8e4m3 pieces 2 lanes 2
{EARLY}{LATE}
for i in 0..2 over R buffers 2 {{
  load w0 from w to grid block 32
  a = main w0 | contract t | reduce H | commit dm f32
}}
y0 = main a | mul k | commit dm f32
store y0 to y
e0 = main g0 | mul v | commit dm f32
e = main e0 | add 1 | commit dm f32
store e to h
"""


def n_computed_after(first: str, second: str) -> int:
    """Count what the second program computes when the first has run."""
    memo, launch = Memo(), Launch(INPUTS, 0)
    run(meaning(compiled(first)), launch, memo)
    before = memo.n_computed
    run(meaning(compiled(second)), launch, memo)
    return memo.n_computed - before


COSTS = {
    "tiles": ("0..2", "0..4"),
    "buffers": ("buffers 2", "buffers 3"),
    "lanes": ("lanes 2", "lanes 1"),
    "run length": ("to grid block 32", "to grid"),
    "placement": ("slices copy:16 H:4", "slices copy:32 H:2"),
    "clusters": ("cluster R:2, slices R:16 H:4", "cluster copy:2, slices R:16 H:4"),
    "context": ("e = main", "e = sub"),
    "load lists": ("load x0 from x to", "load x0, x1 from x, x to"),
    "names": ("g0", "other"),
    "dead code": ("store y0", "f = main a | exp | commit dm f32\nstore y0"),
    "fusion": ("commit dm f32\ne = main e0 |", "add 1 | commit dm f32\ne = main e0 |"),
    "order": (f"{EARLY}{LATE}", f"{LATE}{EARLY}"),
}


@pytest.mark.parametrize("change", COSTS)
def test_what_only_costs_is_not_computed_again(change: str) -> None:
    """Most candidates differ in cost alone: their check must take no time."""
    source = DECLARED + MATVEC
    changed = source.replace(*COSTS[change])
    if change == "placement":
        changed = changed.replace("slices R:16 H:4", "slices R:32 H:2")
    if change == "fusion":
        changed = changed.replace("e = main e0 | add 1", "e = main e0")

    assert changed != source
    assert meaning(compiled(changed)).key == meaning(compiled(source)).key
    assert n_computed_after(source, changed) == 0


VALUES = {
    "pieces": ("pieces 2", "pieces 3"),
    "constant": ("add 1", "add 2"),
    "function": ("mul v", "sub v"),
    "operand": ("from g to", "from x to"),
    "rounding": ("mul v | commit dm f32", "mul v | commit dm bf16"),
    "index": ("s[1]", "s[2]"),
    "target": ("store y0 to y", ""),
}


@pytest.mark.parametrize("change", VALUES)
def test_what_changes_values_changes_the_meaning(change: str) -> None:
    """Two programs of one meaning share verdicts."""
    source = DECLARED + MATVEC
    changed = source.replace(*VALUES[change])

    assert changed != source
    assert meaning(compiled(changed)).key != meaning(compiled(source)).key


def test_a_changed_tail_leaves_the_contraction_known() -> None:
    """The expensive part is shared as far as the roundings before it agree."""
    source = DECLARED + MATVEC

    assert n_computed_after(source, source.replace("add 1", "add 2")) == 2


def test_the_memo_forgets_what_was_not_used_for_longest() -> None:
    """Its size is bounded, its answers are the same."""
    what, launch, small = meaning(compiled(DECLARED + MATVEC)), Launch(INPUTS, 0), Memo(2_000)

    first, again = run(what, launch, small), run(what, launch, small)

    assert small.n_bytes <= 2_000
    assert not isinstance(first, Hang)
    assert not isinstance(again, Hang)
    for name, codes in first.items():
        np.testing.assert_array_equal(codes, again[name])


# ---- the kernels -----------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def kernel_meaning(name: str, variant: str) -> Meaning:
    folder = "tests/data/npu" if variant == "expert" else "targets/sim/kernels"
    source = (ROOT / folder / f"{name}_{variant}.npu").read_text()
    program = compile_source(name, source, SIGNATURES[name], V1_1)
    assert isinstance(program, Program), program
    return meaning(program)


@pytest.mark.parametrize("name", SIGNATURES)
def test_baseline_and_expert_are_right_at_full_size(name: str) -> None:
    """With room: other seeds give larger errors. Both launches, as a check does them."""
    drawn = fixture(name, seed=1, index=1)
    for inputs in drawn.launches:
        memo, launch = Memo(), Launch(inputs.arrays, 0)
        for variant in ("baseline", "expert"):
            outputs = run(kernel_meaning(name, variant), launch, memo)
            assert not isinstance(outputs, Hang)
            margin, detail = inputs.judge(outputs)
            assert detail == ""
            assert margin is not None
            assert 0.1 < margin < 0.8


def test_a_deep_program_means_something_too() -> None:
    """Nothing recurses over its statements."""
    steps = [f"b{i + 1} = main b{i} | add 1 | commit dm f32" for i in range(1_500)]
    body = "\n".join(["load b0 from later to all", *steps, "store b1500 to h"])

    assert np.isnan(output(body, "h")).all()
