"""What a kernel of the simulated NPU is checked on, and that the check sees what is wrong."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from sim.npu.compiler import compile_source
from sim.npu.interpret import Hang, Outputs, meaning, run
from sim.npu.kernels import SIGNATURES
from sim.npu.memo import Memo
from sim.npu.program import Program
from sim.npu.toolchain import V1_1
from targets.sim.fixtures import Fixture, Inputs, fixture

ROOT = Path(__file__).parents[2]
KERNELS = pytest.mark.parametrize("name", SIGNATURES)
MEMO = Memo()


@lru_cache(maxsize=1)
def drawn(name: str, index: int = 1) -> Fixture:
    return fixture(name, seed=1, index=index)


def source(name: str, variant: str) -> str:
    folder = "tests/data/npu" if variant == "expert" else "targets/sim/kernels"
    return (ROOT / folder / f"{name}_{variant}.npu").read_text()


def computed(name: str, text: str, inputs: Inputs) -> Outputs:
    program = compile_source(name, text, SIGNATURES[name].load_only(), V1_1)
    assert isinstance(program, Program), program
    outputs = run(meaning(program), inputs.launch, MEMO)
    assert not isinstance(outputs, Hang)
    return outputs


@KERNELS
@pytest.mark.parametrize("variant", ["baseline", "expert"])
def test_good_kernels_pass_with_room(name: str, variant: str) -> None:
    """At full size, both launches; on other seeds the largest error is larger."""
    for inputs in drawn(name).launches:
        margin, detail = inputs.judge(computed(name, source(name, variant), inputs))

        assert detail == ""
        assert margin is not None
        assert 0.1 < margin < 0.7


@KERNELS
def test_a_kernel_that_keeps_four_bits_of_x_fails(name: str) -> None:
    """It is fast, and right on values that f8 holds."""
    text = source(name, "expert").replace("pieces 2", "pieces 1")
    inputs = drawn(name).launches[0]

    margin, detail = inputs.judge(computed(name, text, inputs))

    assert margin is not None
    assert margin > 2
    assert detail.startswith("differs by")


@KERNELS
def test_a_kernel_that_only_loads_fails(name: str) -> None:
    """What it does not write is NaN, or the argument as it was."""
    inputs = drawn(name).launches[0]

    assert inputs.judge(computed(name, source(name, "bound"), inputs))[1] != ""


def test_only_the_row_of_the_position_may_change() -> None:
    """The other rows of the caches are other tokens."""
    name = "sliding_project_qkv"
    inputs = drawn(name).launches[0]
    outputs = dict(computed(name, source(name, "baseline"), inputs))
    row = int(inputs.launch.arguments["offsets"][1]) // 4096
    outputs["k_cache"] = outputs["k_cache"].copy()
    outputs["k_cache"][row - 1, 0, 0] ^= 1

    margin, detail = inputs.judge(outputs)

    assert margin is None
    assert f"only row {row} may be written" in detail


@KERNELS
def test_the_second_launch_has_the_same_weights_and_other_inputs(name: str) -> None:
    """What a launch leaves behind is of no use to the next."""
    first, second = (inputs.launch.arguments for inputs in drawn(name).launches)

    for argument in SIGNATURES[name].arguments:
        if argument.part == "out" or argument.name in ("cos", "sin"):
            continue
        same = first[argument.name] is second[argument.name]
        assert same == (argument.part == "weight")
        assert not first[argument.name].flags.writeable


def test_a_fixture_is_reproducible_and_its_seed_matters() -> None:
    """A verdict can be checked again; held-out seeds are other values."""
    name = "sliding_attention_output"
    first, again, other = (fixture(name, seed, 0).launches[0] for seed in (1, 1, 2))
    residuals = [inputs.drawn.expected["residual"] for inputs in (first, again, other)]

    np.testing.assert_array_equal(residuals[0], residuals[1])
    assert (residuals[0] != residuals[2]).any()
    assert first.launch.name == again.launch.name != other.launch.name
