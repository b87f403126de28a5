"""What RNGD's own sources cost by the vendor's cost model: headroom, controls and bounds."""

from functools import lru_cache

import pytest

from targets.protocol import Built
from targets.rngd.artifact import unpack
from targets.rngd.build import build
from targets.rngd.evaluating import least_cycles
from targets.rngd.kernels import TASKS
from targets.rngd.sources import SLOWDOWN, sources
from tests.support.rngd import NEWER, toolchain

pytestmark = [pytest.mark.rngd, pytest.mark.timeout(600)]

EVERY = pytest.mark.parametrize("name", TASKS)
LOOPS = {
    "decoder_feedforward": 577_463,
    "sliding_project_qkv": 127_317,
    "sliding_attention_output": 44_878,
    "sliding_project_qkv_mxfp4": 145_125,
    "sliding_attention_output_mxfp4": 48_778,
}
"""Cycles of loops over tiles of the same kernels, published before; that FFN has MXFP4 weights."""


@lru_cache
def cycles(name: str, source: str) -> int:
    built = build(toolchain(NEWER), TASKS[name], source)
    assert isinstance(built, Built), built
    found = unpack(name, built.artifact).cycles
    assert found is not None
    return found


@EVERY
def test_the_baseline_is_the_loop_that_a_newcomer_writes(name: str) -> None:
    """Not made slow for the speed-up's sake: within 15 per cent of another's, and faster."""
    assert 0.85 * LOOPS[name] < cycles(name, sources(TASKS[name]).baseline) < LOOPS[name]


@EVERY
def test_the_load_only_kernel_is_little_but_loads(name: str) -> None:
    """Between the weights alone and that with a start of each transfer, of which it has a dozen."""
    task = TASKS[name]
    found = cycles(name, sources(task).bounds["loads"])
    alone = least_cycles(task.weight_bytes)

    assert alone < found < alone + 500 * len(task.parameters)
    assert 2.5 * found < cycles(name, sources(task).baseline)


@EVERY
def test_the_slow_control_is_slow(name: str) -> None:
    """A harness that does not see it measures nothing."""
    own = sources(TASKS[name])

    assert cycles(name, own.canary_slow) > SLOWDOWN * cycles(name, own.baseline)
