"""The interpreter against a second, slow one that goes tile by tile, on random legal programs."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sim.npu.dtypes import dense
from sim.npu.faults import faults
from sim.npu.interpret import Hang, meaning, run, trace
from sim.npu.memo import Launch, Memo
from tests.support.npu_launch import bf16, decoded
from tests.support.npu_plain import F4, F8, Array, Plain, nearest_bf16, signed
from tests.support.npu_programs import SIGNATURE, Sample, programs


def drawn(seed: int) -> dict[str, Array]:
    """Draw the codes of all arguments; weights are neither tiny nor huge."""
    rng = np.random.default_rng(seed)
    codes: dict[str, Array] = {"at": rng.integers(0, 8, 2) * 512}
    for argument in SIGNATURE.arguments:
        if argument.dtype == "f8e4m3":
            codes[argument.name] = rng.integers(40, 80, argument.shape, np.uint8)
            codes[argument.name] |= rng.integers(0, 2, argument.shape, np.uint8) << 7
        elif argument.dtype == "f4e2m1":
            rows, columns = argument.shape
            codes[argument.name] = rng.integers(0, 256, (rows, columns // 2), np.uint8)
        elif argument.dtype in ("bf16", "f32"):
            values = nearest_bf16(rng.standard_normal(argument.shape, np.float32))
            codes[argument.name] = bf16(values) if argument.dtype == "bf16" else values
    return codes


def values_of(codes: dict[str, Array]) -> dict[str, Array]:
    """Decode arguments by the definition of their formats."""
    values = {}
    for argument in SIGNATURE.arguments:
        code = codes[argument.name]
        if argument.dtype == "f8e4m3":
            values[argument.name] = signed(F8, code, 128)
        elif argument.dtype == "f4e2m1":
            halves = np.stack([code & 15, code >> 4], axis=-1).reshape(argument.shape)
            values[argument.name] = signed(F4, halves, 8)
        elif argument.part != "out":
            values[argument.name] = decoded(code)
    return values


@settings(max_examples=200, deadline=None)
@given(programs(), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole_tensors_are_what_tiles_make_of_them(sample: Sample, seed: int) -> None:
    """All tensors, to the bit; only loops of the slow one know that there are tiles."""
    assume({fault.kind for fault in faults(sample.program)} <= {"unwritten"})
    codes, memo = drawn(seed), Memo()
    launch = Launch("test", codes, seed)
    _, chip = trace(sample.program)

    plain = Plain(sample.program, values_of(codes))

    for name, node in chip.items():
        np.testing.assert_array_equal(dense(memo.value(node, launch)), plain.chip[name], name)
    outputs = run(meaning(sample.program), launch, memo)
    assert not isinstance(outputs, Hang)
    for name, after in outputs.items():
        np.testing.assert_array_equal(decoded(after), plain.hbm[name], name)


@settings(max_examples=50, deadline=None)
@given(programs(), st.integers(0, 99))
def test_a_memo_changes_nothing_but_time(sample: Sample, seed: int) -> None:
    """Faulty programs included: garbage depends on the launch, not on what was run before."""
    what, launch, memo = meaning(sample.program), Launch("test", drawn(seed), seed), Memo()

    first = run(what, launch, memo)
    n_computed = memo.n_computed
    again = run(what, launch, memo)
    forgetful = run(what, launch, Memo(0))

    assert memo.n_computed == n_computed
    for other in (again, forgetful):
        if isinstance(first, Hang) or isinstance(other, Hang):
            assert first == other
        else:
            for name, codes in first.items():
                np.testing.assert_array_equal(codes, other[name])
