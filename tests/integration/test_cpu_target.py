"""The cpu target on this machine: its own sources build, check and time as the protocol says."""

from statistics import median

import pytest

from targets.cpu.target import CpuTarget
from targets.gemma4.kernels import KERNELS
from targets.protocol import BuildFailed, Built, Measured, Target, TargetError

pytestmark = pytest.mark.device

TARGET = CpuTarget("small")
SEEDS = (700_011, 700_012, 700_013, 700_014)


def _artifact(kernel: str, source: str) -> bytes:
    built = TARGET.build(kernel, source)
    assert isinstance(built, Built), built
    return built.artifact


def _ratio(kernel: str, arms: list[bytes], n_pairs: int = 6) -> float:
    """Return the median over pairs of arm 1's time over arm 0's."""
    schedule = [0, 1, 1, 0] * (n_pairs // 2)
    measured = TARGET.measure(
        kernel,
        arms,
        schedule,
        group=2,
        launches=4,
        checked=[True, True],
        seed=5,
        limit_s=100.0,
    )
    assert isinstance(measured, Measured), measured
    assert [run.arm for run in measured.runs] == schedule
    assert all(run.probe_s > 0 and min(run.launches_s) > 0 for run in measured.runs)
    assert all(margin is not None and margin <= 1.0 for margin in measured.margins)
    pairs = zip(measured.runs[::2], measured.runs[1::2], strict=True)
    times = [{run.arm: median(run.launches_s) for run in pair} for pair in pairs]
    return median(pair[1] / pair[0] for pair in times)


def test_the_class_obeys_the_protocol() -> None:
    """The type checker reads this line."""
    target: Target = TARGET

    assert target.kernels() == KERNELS
    assert "small" in target.presets()
    assert target.card(KERNELS[0]).weight_bytes > 1_000_000


def test_an_unknown_preset_is_refused() -> None:
    """Before any work is done."""
    with pytest.raises(TargetError, match="use one of"):
        CpuTarget("tiny")


def test_the_fingerprint_names_what_times_depend_on() -> None:
    """It must not change between two calls, or every run would seem to change its toolchain."""
    fingerprint = TARGET.fingerprint()

    assert fingerprint == TARGET.fingerprint()
    assert {"compiler", "flags", "processor", "features", "kernel"} <= fingerprint.keys()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_baseline_is_correct_and_the_controls_are_what_they_say(kernel: str) -> None:
    """A harness whose controls fail measures nothing."""
    sources = TARGET.sources(kernel)
    right = TARGET.check(kernel, _artifact(kernel, sources.baseline), SEEDS)
    wrong = TARGET.check(kernel, _artifact(kernel, sources.canary_wrong), SEEDS)
    slow = TARGET.check(kernel, _artifact(kernel, sources.canary_slow), SEEDS[:2])

    assert len(right) == len(SEEDS)
    assert all(result.passed for result in right + slow)
    assert len(wrong) == 1
    assert not wrong[0].passed
    assert not any(str(seed) in result.detail for result in wrong for seed in SEEDS)


def test_a_build_is_reproducible() -> None:
    """Equal sources give equal bytes: the artifact's hash names it."""
    baseline = TARGET.sources(KERNELS[0]).baseline

    assert _artifact(KERNELS[0], baseline) == _artifact(KERNELS[0], baseline)


def test_a_failed_build_says_where_and_what() -> None:
    """Diagnostics go to the agent; paths of this machine do not."""
    text = '#include "kernel.h"\nvoid kernel(const struct args *a) {\n    a->nowhere[0] = 1;\n}\n'
    failed = TARGET.build(KERNELS[0], text)

    assert isinstance(failed, BuildFailed)
    assert failed.signature.startswith("error: ")
    assert failed.snippet == "a->nowhere[0] = 1;"
    assert "/tmp" not in failed.diagnostics


def test_equal_arms_take_equal_time() -> None:
    """Two copies of one artifact: what differs is the machine's noise."""
    kernel = "sliding_attention_output"
    artifact = _artifact(kernel, TARGET.sources(kernel).baseline)

    assert 0.7 < _ratio(kernel, [artifact, artifact]) < 1.4


def test_a_slow_arm_reads_slow() -> None:
    """The slow control does its work three times."""
    kernel = "sliding_attention_output"
    sources = TARGET.sources(kernel)
    arms = [_artifact(kernel, sources.baseline), _artifact(kernel, sources.canary_slow)]

    assert _ratio(kernel, arms) > 2.0


def test_the_bounds_build_and_are_faster_than_the_baseline() -> None:
    """They only load; a kernel that also computes cannot be faster than the best of them."""
    kernel = "sliding_attention_output"
    sources = TARGET.sources(kernel)
    names = sorted(sources.bounds)
    arms = [_artifact(kernel, sources.baseline)] + [
        _artifact(kernel, sources.bounds[name]) for name in names
    ]
    measured = TARGET.measure(
        kernel,
        arms,
        list(range(len(arms))) * 3,
        group=len(arms),
        launches=4,
        checked=[True] + [False] * len(names),
        seed=5,
        limit_s=100.0,
    )

    assert isinstance(measured, Measured), measured
    times = {
        arm: median(t for run in measured.runs if run.arm == arm for t in run.launches_s)
        for arm in range(len(arms))
    }
    assert min(times, key=lambda arm: times[arm]) > 0
    assert measured.margins[1:] == (None,) * len(names)
