"""The catalogue on this machine: right designs pass, wrong ones are found, slow ones are slow."""

from statistics import median

import pytest

from decisions.replies import SourceText, parse
from targets.cpu.designs import DESIGNS, Design
from targets.cpu.target import CpuTarget
from targets.cpu.toolchain import features
from targets.gemma4.kernels import KERNELS
from targets.protocol import Ask, Built, Measured

pytestmark = pytest.mark.device

TARGET = CpuTarget("small")
SEEDS = (810_001, 810_002, 810_003)
QKV, ATTENTION, FEEDFORWARD = KERNELS
WRONG_F8 = {"fixed-point", "truncated-sums", "unrolled", "bf16-shift"}
WRONG_F4 = {"bytes", "shared-scale", "pipelined"}


def _available(kernel: str) -> list[Design]:
    return [design for design in DESIGNS[kernel] if design.needs <= features()]


def _artifact(kernel: str, source: str) -> bytes:
    built = TARGET.build(kernel, source)
    assert isinstance(built, Built), built
    assert not built.warnings
    return built.artifact


def _passes(kernel: str, source: str) -> bool:
    results = TARGET.check(kernel, _artifact(kernel, source), SEEDS)
    return all(result.passed for result in results)


def _sampled() -> list[tuple[str, Design]]:
    """Every design of one kernel for each weight format; of the third kernel every fourth."""
    every = {QKV: 1, FEEDFORWARD: 1, ATTENTION: 4}
    return [(kernel, design) for kernel, n in every.items() for design in _available(kernel)[::n]]


@pytest.mark.parametrize(("kernel", "design"), _sampled(), ids=lambda v: getattr(v, "name", v))
def test_a_design_passes_unless_it_is_meant_to_be_wrong(kernel: str, design: Design) -> None:
    """The wrong ones are mistakes that engineers make: screening has to find them by itself."""
    assert _passes(kernel, design.source(kernel, {})) == (design.name not in WRONG_F8 | WRONG_F4)


@pytest.mark.parametrize("kernel", [QKV, FEEDFORWARD])
def test_every_step_from_the_last_design_is_right(kernel: str) -> None:
    """A step changes speed only."""
    source = _available(kernel)[-1].source(kernel, {"ROWS": 4, "PREFETCH": 512})
    tried: frozenset[str] = frozenset()
    while True:
        ask = Ask(kernel, "step", source, "", tried, "", 1)
        step = parse("step", TARGET.catalogue.reply(ask), source)
        if not isinstance(step, SourceText):
            break
        tried |= {step.move}
        assert _passes(kernel, step.source), step.move
    assert len(tried) >= 8


def test_a_slow_design_is_slower_than_a_simple_one() -> None:
    """Going down the columns wastes most of every access, where no cache holds the weights."""
    kernel = FEEDFORWARD
    source = {design.name: design.source(kernel, {}) for design in _available(kernel)}
    arms = [_artifact(kernel, source[name]) for name in ("table", "columns")]
    schedule = [0, 1] * 8
    measured = TARGET.measure(
        kernel, arms, schedule, group=2, launches=5, checked=[True, True], seed=1, limit_s=60.0
    )
    assert isinstance(measured, Measured), measured
    times = [[min(r.launches_s) for r in measured.runs if r.arm == arm] for arm in (0, 1)]

    assert median(times[1]) > 1.2 * median(times[0])
