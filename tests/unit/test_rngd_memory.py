"""The account of the chip's SRAM, on schedules made by hand."""

import json
from typing import Any

import pytest

from targets.profiler.schedule import Schedule
from targets.profiler.schedule import read as read_schedule
from targets.rngd.build import believed
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.evaluating import Evaluation, least_cycles
from targets.rngd.ir.reading import read
from targets.rngd.memory import Peak, peak, tensor_bytes
from tests.support.rngd import PROJECT, TEXT

W, X, Y = 2 * 4096 * 3840, 2 * 3840, 2 * 4096
KERNEL = read(TEXT.replace("    return y", "    v: [N]/bf16 = reshape(y)\n    return v"))


def _tensor(index: int, name: str, begin: int, end: int, where: str = "Sram") -> dict[str, Any]:
    life = {"begin": begin, "end": end}
    return {"index": str(index), "name": name, "buffer_type": where, "lifetime": life}


def _step(context: str, inputs: list[int], outputs: list[int]) -> dict[str, Any]:
    found = {"contexts": [context], "input_tensors": inputs, "output_tensors": outputs}
    return {**found, "index": 0, "lifetime": {"begin": 0, "end": 20}}


_NOTHING = _step("MainContext", [], [])


def _schedule(tensors: list[dict[str, Any]], *steps: dict[str, Any]) -> Schedule:
    return read_schedule(json.dumps({"tensors": tensors, "instructions": steps or [_NOTHING]}))


def test_bytes_follow_from_types() -> None:
    """Of everything that has a name."""
    assert tensor_bytes(KERNEL) == {"w": W, "x": X, "y": Y, "v": Y}


def test_what_lives_at_once_adds_up() -> None:
    """A tensor that ends where another begins has made room for it."""
    tensors = [_tensor(0, "w", 0, 10), _tensor(1, "x", 5, 10), _tensor(2, "y", 10, 20)]

    assert peak(KERNEL, _schedule(tensors)) == Peak(W + X, 5)


def test_what_is_not_on_chip_does_not_count() -> None:
    """Weights in DRAM are everywhere."""
    assert peak(KERNEL, _schedule([_tensor(0, "w", 0, 10, "Dram")])) == Peak(0, 0)


def test_a_view_is_the_memory_that_it_views() -> None:
    """From the first begin to the last end, and once."""
    tensors = [_tensor(0, "y", 0, 5), _tensor(1, "v", 5, 20), _tensor(2, "x", 10, 20)]

    assert peak(KERNEL, _schedule(tensors, _step("Noop", [0], [1]))) == Peak(Y + X, 10)


def test_what_the_compiler_makes_of_a_tensor_is_as_large() -> None:
    """It appends a word to the name."""
    assert peak(KERNEL, _schedule([_tensor(0, "x_updated", 0, 5)])) == Peak(X, 0)


def test_a_tensor_without_a_name_is_as_large_as_what_it_is_made_into() -> None:
    """Between two passes of a split operation lies at most its widest form: N in 32 bits."""
    tensors = [_tensor(0, "", 0, 5), _tensor(1, "y", 5, 9)]

    assert peak(KERNEL, _schedule(tensors, _step("MainContext", [0], [1]))) == Peak(2 * Y, 0)


def test_what_nobody_can_tell_is_as_large_as_anything() -> None:
    """A name that hides a tensor hides no bytes."""
    assert peak(KERNEL, _schedule([_tensor(0, "hidden", 0, 5)])) == Peak(W, 0)


def test_a_name_is_taken_for_the_most_that_it_can_mean() -> None:
    """Nothing is gained by a small tensor named as the compiler names what it makes of others."""
    small = "    One: Axis = 1\n    x_updated: [One]/bf16 = full(1.0)\n    return y"
    kernel = read(TEXT.replace("    return y", small))
    assert tensor_bytes(kernel)["x_updated"] == 2

    assert peak(kernel, _schedule([_tensor(0, "x_updated", 0, 5)])) == Peak(X, 0)


@pytest.mark.parametrize("dump", [b"", b"[]", b"{}", b'{"tensors": 1}', b"[" * 100_000])
def test_a_dump_of_another_form_is_a_verdict(dump: bytes) -> None:
    """The compiler read hostile text, and may have written anything."""
    fault = believed(PROJECT, KERNEL, Evaluation(1_000_000, dump))

    assert isinstance(fault, Diagnostic)
    assert fault.what == "schedule"


def test_the_least_cycles_are_those_of_the_model_without_setup() -> None:
    """8 engines of 170 bytes a cycle."""
    assert least_cycles(1360) == 1
    assert least_cycles(1361) == 2
