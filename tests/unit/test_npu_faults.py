"""Each silent fault of the NPU: its smallest program, its neighbour, what becomes of the values."""

from typing import NamedTuple

import numpy as np
import pytest

from sim.npu.faults import FaultKind, faults
from sim.npu.interpret import Hang, meaning, run
from sim.npu.memo import Launch, Memo
from tests.support.npu_launch import bf16, compiled, launched

HEAD = """
kernel k
axis A = 64
axis D = 1024
axis R = 4
axis X = 16384
hbm a: bf16[A] in
hbm d: bf16[D] in
hbm x: bf16[X] in
hbm w: bf16[A, D] in
hbm out: bf16[A] out
hbm f: f32[A] out
hbm long: bf16[X] out
hbm wide: bf16[D] out
hbm table: bf16[R, A] out
hbm tmp: bf16[R, A] scratch
hbm half: bf16[A] scratch
place all = cluster one, slices copy:64
place head = cluster one, slices idle:64
place cut = cluster one, slices D:64
place rows = cluster one, slices A:64
place ring = cluster one, slices copy:8 idle:8
"""
D = np.arange(1024) % 128
INPUTS = {
    "a": bf16(np.arange(64)),
    "d": bf16(D),
    "x": bf16(np.ones(16_384)),
    "w": bf16(np.ones((64, 1024))),
}


class Case(NamedTuple):
    """Two programs of the same operations, of which one has a fault."""

    kind: FaultKind
    faulty: str
    sound: str
    tail: str
    """Of both: how the value gets to an output."""


LOAD_A = "load a0 from a to all\n"
SCALE_D = (
    "s = main a0 | sum A | commit dm f32\nv = sub s | commit vrf\n"
    "load d0 from d to cut\ny = main d0 | mul v | commit dm bf16"
)
CASES = (
    Case(
        "hang",
        LOAD_A + "v = main a0 | commit vrf",
        LOAD_A + "v = sub a0 | commit vrf",
        "y = main a0 | add v | commit dm bf16\nstore y to out",
    ),
    Case(
        "hang",
        "load x0 from x to ring\ny = main x0 | switch broadcast | commit dm bf16",
        "load x0 from x to head\ny = main x0 | switch broadcast | commit dm bf16",
        "store y to long",
    ),
    Case(
        "stale operand",
        "load d0 from d to head\nt = main d0 | switch broadcast | commit trf bf16",
        "load d0 from d to head\nb = main d0 | switch broadcast | commit dm bf16\n"
        "t = main b | commit trf bf16",
        "load w0 from w to rows\ny = main w0 | contract t | commit dm f32\nstore y to f",
    ),
    Case(
        "unchained",
        LOAD_A + "v = sub a0 | mul 2 | commit vrf",
        LOAD_A + "b = sub a0 | mul 2 | commit dm f32\nv = sub b | commit vrf",
        "y = main a0 | add v | commit dm bf16\nstore y to out",
    ),
    Case(
        "packet-major",
        "load d0 from d to cut\ng = main d0 | switch gather D | commit dm f32",
        "load d0 from d to cut\ng = main d0 | switch gather D | commit dm bf16",
        "b = main g | commit dm bf16\nstore b to wide",
    ),
    Case(
        "idle operand",
        "load a0 from a to head\n" + SCALE_D,
        "load a0 from a to all\n" + SCALE_D,
        "store y to wide",
    ),
    Case(
        "sub roll",
        LOAD_A + "b = sub a0 roll A | commit dm bf16",
        LOAD_A + "b = main a0 roll A | commit dm bf16",
        "store b to out",
    ),
    Case("unreplicated", LOAD_A + "store a0 to table", LOAD_A + "store a0 to table[0]", ""),
    Case(
        "unwritten",
        LOAD_A + "store a0 to tmp[1]\nload b from tmp[2] to all",
        LOAD_A + "store a0 to tmp[1]\nload b from tmp[1] to all",
        "store b to out",
    ),
)
EACH = pytest.mark.parametrize("case", CASES, ids=[case.kind for case in CASES])


@EACH
def test_a_fault_is_found_in_its_smallest_program_and_not_in_its_neighbour(case: Case) -> None:
    """All of them compile."""
    (found,) = faults(compiled(HEAD + case.faulty))

    assert found.kind == case.kind
    assert faults(compiled(HEAD + case.sound)) == ()


@EACH
def test_a_fault_changes_what_a_program_means(case: Case) -> None:
    """Else a sound candidate's verdict would be taken for that of its faulty neighbour."""
    faulty, sound = (
        meaning(compiled(f"{HEAD}{body}\n{case.tail}")) for body in (case.faulty, case.sound)
    )

    assert faulty.key != sound.key


def outputs(body: str, seed: int = 0) -> dict[str, np.ndarray]:
    return launched(HEAD + body, INPUTS, seed=seed)


def test_a_hang_ends_the_launch_at_its_statement() -> None:
    """There are no outputs to compare; whoever checks needs the place."""
    what = meaning(compiled("\n".join([HEAD, LOAD_A + "v = main a0 | commit vrf"])))

    ended = run(what, Launch(INPUTS, 0), Memo())

    assert isinstance(ended, Hang)
    assert ended.position.line == HEAD.count("\n") + 3


def test_a_stale_operand_is_finite_and_differs_by_launch() -> None:
    """What lay in the registers before has nothing to do with the program."""
    body = (
        "load d0 from d to head\nt = main d0 | switch broadcast | commit trf bf16\n"
        "load w0 from w to rows\ny = main w0 | contract t | commit dm f32\n"
        "store y to f"
    )
    first, again, other = (outputs(body, seed)["f"] for seed in (1, 1, 2))

    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert not np.isclose(first, float(D.sum())).any()


def test_an_unchained_pass_leaves_the_value_as_it_was_fetched() -> None:
    """The vector engine is passed by."""
    body = LOAD_A + "v = sub a0 | mul 2 | commit vrf\ny = main a0 | add v | commit dm bf16\n"

    np.testing.assert_array_equal(outputs(body + "store y to out")["out"], 2 * np.arange(64))


def test_parts_of_several_flits_arrive_flit_by_flit() -> None:
    """16 elements of 4 bytes are two flits: element (p, f, i) lands at (f, p, i)."""
    body = (
        "load d0 from d to cut\ng = main d0 | switch gather D | commit dm f32\n"
        "b = main g | commit dm bf16\nstore b to wide"
    )
    expected = D.reshape(64, 2, 8).transpose(1, 0, 2).ravel()

    np.testing.assert_array_equal(outputs(body)["wide"], expected)


def test_slices_without_the_operand_read_zero() -> None:
    """Only the first slice holds the sum."""
    body = (
        "load a0 from a to head\ns = main a0 | mul 0 | add 2 | sum A | commit dm f32\n"
        "v = sub s | commit vrf\n"
        "load d0 from d to cut\ny = main d0 | mul v | commit dm bf16\nstore y to wide"
    )
    expected = np.where(np.arange(1024) < 16, 128 * D, 0)

    np.testing.assert_array_equal(outputs(body)["wide"], expected)


def test_rows_of_slices_without_the_contraction_operand_are_zero() -> None:
    """X lies in the first slice alone, and so does the only row that it meets."""
    body = (
        "load d0 from d to head\nt = main d0 | commit trf bf16\n"
        "load w0 from w to rows\ny = main w0 | contract t | commit dm f32\n"
        "store y to f"
    )

    np.testing.assert_array_equal(outputs(body)["f"], [D.sum()] + 63 * [0])


def test_sub_does_not_roll() -> None:
    """The halves stay; main exchanges them."""
    sub = LOAD_A + "b = sub a0 roll A | commit dm bf16\nstore b to out"

    np.testing.assert_array_equal(outputs(sub)["out"], np.arange(64))
    rolled = outputs(sub.replace("sub", "main"))["out"]
    np.testing.assert_array_equal(rolled, np.roll(np.arange(64), 32))


def test_a_store_writes_index_0_of_the_axes_that_the_source_lacks() -> None:
    """The rest keeps what nobody wrote: NaN."""
    table = outputs(LOAD_A + "store a0 to table")["table"]

    np.testing.assert_array_equal(table[0], np.arange(64))
    assert np.isnan(table[1:]).all()


def test_unwritten_scratch_is_nan() -> None:
    """An output that was never written as well."""
    values = outputs("load b from half to all\nstore b to out")

    assert all(np.isnan(value).all() for value in values.values())


def test_unwritten_codes_differ_by_launch() -> None:
    """f8 has next to no NaN: the memory's rest looks like weights."""
    source = (
        HEAD.replace("hbm half", "hbm codes: f8e4m3[A, D] scratch\nhbm half")
        + "load d0 from d to all\nt = main d0 | commit trf f8e4m3 pieces 2\n"
        "load c from codes to rows\ny = main c | contract t | commit dm f32\nstore y to f"
    )

    first, again, other = (launched(source, INPUTS, seed=seed)["f"] for seed in (1, 1, 2))

    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
