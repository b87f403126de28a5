"""The target `sim`: what the protocol promises, and what its virtual world adds."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sim.clock import VirtualClock
from sim.noise import QUIET, NoiseProfile
from sim.npu.toolchain import V1_0, V1_1, V1_2
from targets import noisy
from targets.protocol import (
    Ask,
    BuildFailed,
    Built,
    Measured,
    MeasureFailed,
    TargetError,
    TruthKnown,
    VirtualTarget,
)
from targets.sim import artifact, durations
from targets.sim.target import SimTarget
from tests.support.npu_kernels import kernel_source

ATTENTION = "sliding_attention_output"
KERNELS = ("sliding_project_qkv", ATTENTION, "decoder_feedforward")


def built(target: SimTarget, kernel: str, source: str) -> bytes:
    answer = target.build(kernel, source)
    assert isinstance(answer, Built), answer
    return answer.artifact


def baseline(target: SimTarget, kernel: str = ATTENTION) -> bytes:
    return built(target, kernel, target.sources(kernel).baseline)


def refused(source: str) -> BuildFailed:
    answer = SimTarget("full").build(ATTENTION, source)
    assert isinstance(answer, BuildFailed)
    return answer


def job(
    target: SimTarget, *arms: bytes, seed: int = 7, limit_s: float = 300.0, launches: int = 10
) -> Measured | MeasureFailed:
    schedule = tuple(range(len(arms))) * 4
    return target.measure(
        ATTENTION, arms, schedule, group=2, launches=launches, checked=(True,) * len(arms),
        seed=seed, limit_s=limit_s,
    )  # fmt: skip


def hanging(target: SimTarget) -> bytes:
    """Main commits to VRF: compiles, and never ends."""
    source = target.sources(ATTENTION).baseline.replace("sv = sub s0", "sv = main s0")
    return built(target, ATTENTION, source)


def test_it_is_a_virtual_target_whose_truth_is_known() -> None:
    """Whoever drives runs, and whoever reports them, asks for these by their protocols."""
    target = SimTarget("full")
    assert isinstance(target, VirtualTarget)
    assert isinstance(target, TruthKnown)


def test_presets_are_the_versions_and_a_quiet_device() -> None:
    """A campaign names the version that it begins with; `full` is what it gets by default."""
    assert SimTarget("full").presets() == ("full", "1.0", "1.1", "1.2", "quiet")
    assert SimTarget("full").fingerprint() == SimTarget("1.0").fingerprint()
    fingerprints = {str(SimTarget(p).fingerprint()) for p in ("1.0", "1.1", "1.2", "quiet")}
    assert len(fingerprints) == 4
    with pytest.raises(TargetError, match=r"unknown preset '2\.0'; use one of full, 1\.0"):
        SimTarget("2.0")


# ---- sources and card ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_controls_and_bounds_are_what_they_claim(kernel: str) -> None:
    """A harness that is checked with a control that is none is not checked."""
    target = SimTarget("full")
    own = target.sources(kernel)
    honest, slow = baseline(target, kernel), built(target, kernel, own.canary_slow)
    (right,) = target.check(kernel, honest, [3])
    (still_right,) = target.check(kernel, slow, [3])
    (wrong,) = target.check(kernel, built(target, kernel, own.canary_wrong), [3])

    assert right.passed
    assert still_right == right
    assert wrong.margin is not None
    assert wrong.margin > 5
    assert target.truth(kernel, slow) > 2 * target.truth(kernel, honest)
    times = [target.truth(kernel, built(target, kernel, s)) for s in own.bounds.values()]
    assert len(times) >= 3
    assert target.true_bound(kernel) == min(times)
    assert target.truth(kernel, honest) > 4 * min(times)


def test_only_its_own_load_only_variants_may_store_nothing() -> None:
    """Anyone else's kernel without outputs is a mistake that a diagnostic should name."""
    target = SimTarget("full")
    kernel = "sliding_project_qkv"
    stolen = target.sources(kernel).bounds["runs"].replace("block 256", "block 64")
    answer = target.build(kernel, stolen)
    assert isinstance(answer, BuildFailed)
    assert answer.signature == "E-UNFILLED: _ is never stored"


def test_a_card_has_all_that_an_author_needs() -> None:
    """Nothing else is in a prompt: mathematics, arguments, tolerance, the language."""
    card = SimTarget("full").card(ATTENTION)
    for text in (
        "y[i] = so[i] * sum_j",
        "wo: f8e4m3[3840, 4096] weight",
        "<= 0.05 + 0.01",
        "E-LANES",
    ):
        assert text in card.task
    assert card.weight_bytes == 15_728_640


# ---- build ---------------------------------------------------------------------------------


def test_a_refusal_says_class_line_and_snippet() -> None:
    """The class groups refusals and the snippet becomes a rule, so neither has names of its own."""
    source = kernel_source(ATTENTION, "baseline")
    failed = refused(source.replace("slices H:256", "slices H:48", 1))
    assert failed.diagnostics.startswith(f"{ATTENTION}.npu:11:34:")
    assert failed.signature == "E-SLICES-POW2: factor _:N is not a power of two"
    assert failed.snippet == "H : 48"
    assert failed.certain
    renamed = source.replace("H", "Rows").replace("slices Rows:256", "slices Rows:96", 1)
    assert refused(renamed).signature == failed.signature


def test_a_name_that_is_the_sign_for_numbers_changes_no_class() -> None:
    """A kernel with an axis N fails as the others do, so that a rule for all is learned once."""
    source = kernel_source(ATTENTION, "baseline").replace("slices idle:256", "slices idle:48", 1)
    renamed = re.sub(r"\bQ\b", "N", source)
    assert refused(renamed).signature == refused(source).signature
    assert "idle:N" in refused(source).signature


@pytest.mark.parametrize("garbage", ["", "\0", "kernel", "}" * 70_000, "x=y|" * 20_000, "é" * 9])
def test_garbage_is_refused_by_a_value(garbage: str) -> None:
    """Agents write garbage; bad news about a candidate is an answer."""
    failed = refused(garbage)
    assert failed.signature.startswith("E-SYNTAX")
    assert len(failed.signature) <= 300
    assert len(failed.snippet) <= 300


def test_a_source_whose_tokens_are_too_long_is_refused_at_once() -> None:
    """Its artifact has a blank between tokens; one that cannot be read again must not be built."""
    source = kernel_source(ATTENTION, "baseline")
    dense = source + "".join(f"a{i}=main x0|max 0|commit dm f32\n" for i in range(1_850))
    assert len(dense) < 65_536
    assert "65536" in refused(dense).diagnostics


def test_an_artifact_is_small_and_has_neither_comments_nor_layout() -> None:
    """Equal programs have equal artifacts, so that what is known of one holds for the other."""
    target, source = SimTarget("full"), kernel_source(ATTENTION, "baseline")
    one = built(target, ATTENTION, source)
    assert one == built(target, ATTENTION, "# changed\n" + source.replace("\n", "\n\n"))
    assert one != built(SimTarget("1.1"), ATTENTION, source)
    assert len(one) < 2_000


@pytest.mark.parametrize(
    "damage",
    [
        lambda a: b"",
        lambda a: a[:-30],
        lambda a: a.replace(b"npu 1.0", b"npu 1.1"),
        lambda a: a.replace(b"1e-6", b"2e-6"),
        lambda a: b"\xff\xfe" * 40,
    ],
)
def test_a_damaged_artifact_is_no_artifact(damage: Callable[[bytes], bytes]) -> None:
    """Its head has the hash of the rest: a cut or changed one is never run."""
    target = SimTarget("full")
    damaged = damage(baseline(target))
    for use in (
        lambda: target.check(ATTENTION, damaged, [1]),
        lambda: target.truth(ATTENTION, damaged),
        lambda: job(target, damaged),
    ):
        with pytest.raises(ValueError, match="artifact"):
            use()


def test_an_artifact_of_another_kernel_is_no_artifact() -> None:
    """Buffers of one kernel must not be bound to another."""
    target = SimTarget("full")
    with pytest.raises(ValueError, match="build it from its source"):
        target.truth("decoder_feedforward", baseline(target))


# ---- check ---------------------------------------------------------------------------------


def test_a_check_stops_at_the_first_failure() -> None:
    """What is wrong once is wrong; device time and patience are for others."""
    target = SimTarget("full")
    wrong = built(target, ATTENTION, target.sources(ATTENTION).canary_wrong)
    assert len(target.check(ATTENTION, wrong, [3, 4, 5])) == 1
    assert len(target.check(ATTENTION, baseline(target), [3, 4])) == 2


def test_a_hang_is_a_failed_check() -> None:
    """It has no outputs to compare."""
    target = SimTarget("full")
    (result,) = target.check(ATTENTION, hanging(target), [3, 4])
    assert not result.passed
    assert result.detail.startswith("hangs at ")


# ---- measure -------------------------------------------------------------------------------


def test_readings_scatter_around_the_truth() -> None:
    """On a quiet device they are it, within a per cent."""
    target = SimTarget("quiet")
    arms = baseline(target), built(target, ATTENTION, kernel_source(ATTENTION, "expert"))
    got = job(target, *arms)
    assert isinstance(got, Measured)
    assert [run.arm for run in got.runs] == [0, 1] * 4
    assert all(margin is not None and margin <= 1 for margin in got.margins)
    for run in got.runs:
        assert len(run.launches_s) == 10
        assert all(
            s == pytest.approx(target.truth(ATTENTION, arms[run.arm]), rel=0.01)
            for s in run.launches_s
        )
    assert got.runs[0].probe_s == got.runs[1].probe_s


def test_readings_follow_from_the_job_and_its_time_alone() -> None:
    """The same seed gives the same log, in whatever process; another time gives other noise."""
    first, second = SimTarget("full"), SimTarget("full")
    arm = baseline(first)
    first.clock, second.clock = VirtualClock(), VirtualClock()
    assert job(first, arm, arm) == job(second, arm, arm)
    assert job(first, arm, arm) != job(second, arm, arm, seed=8)
    later = SimTarget("full")
    later.clock = VirtualClock(now_s=3_600.0)
    assert job(later, arm, arm) != job(SimTarget("full"), arm, arm)


def test_the_first_launch_pays_for_the_idle_device() -> None:
    """While a job starts the device has nothing to do, as on the chip."""
    target = SimTarget("full")
    arm = baseline(target)
    got = job(target, arm, arm)
    assert isinstance(got, Measured)
    others = sorted(got.runs[0].launches_s[1:])
    assert got.runs[0].launches_s[0] > others[len(others) // 2] + 10_000 / artifact.CLOCK_HZ


def test_an_arm_that_hangs_is_named_and_costs_the_limit() -> None:
    """A candidate that wedges the device must not be blamed on the device."""
    target = SimTarget("full")
    honest, bad = baseline(target), hanging(target)
    assert math.isinf(target.truth(ATTENTION, bad))
    target.clock = VirtualClock()
    got = job(target, honest, bad, limit_s=123.0)
    assert isinstance(got, MeasureFailed)
    assert got.arm == 1
    assert target.clock() == 123.0


def test_an_arm_that_is_wrong_on_the_device_is_named() -> None:
    """No speed of a wrong result is ever reported."""
    target = SimTarget("full")
    wrong = built(target, ATTENTION, target.sources(ATTENTION).canary_wrong)
    got = job(target, baseline(target), wrong)
    assert isinstance(got, MeasureFailed)
    assert got.arm == 1
    assert "tolerances" in got.reason


@pytest.mark.parametrize(
    ("profile", "lasts_s"),
    [
        (replace(QUIET, hang_rate=1.0), 300.0),
        (replace(QUIET, loss_rate=1.0), noisy.START_S + 80 * noisy.LAUNCH_S),
    ],
)
def test_a_job_may_hang_or_vanish_by_itself(
    monkeypatch: pytest.MonkeyPatch, profile: NoiseProfile, lasts_s: float
) -> None:
    """That is the device's fault, not an arm's."""
    noisy._device.cache_clear()
    monkeypatch.setitem(noisy.PROFILES, "quiet", profile)
    target = SimTarget("quiet")
    arm = baseline(target)
    target.clock = VirtualClock()
    got = job(target, arm, arm)
    noisy._device.cache_clear()
    assert isinstance(got, MeasureFailed)
    assert got.arm is None
    assert target.clock() == lasts_s


# ---- time and toolchain --------------------------------------------------------------------


def test_work_takes_virtual_time() -> None:
    """The shares of build, check and device decide what is scarce."""
    target = SimTarget("full")
    clock = target.clock = VirtualClock()
    arm = baseline(target)
    assert clock.spent() == durations.BUILD_S
    target.check(ATTENTION, arm, [3, 4])
    assert clock.spent() == 2 * durations.CHECK_S
    job(target, arm, arm)
    assert clock.spent() == noisy.START_S + 80 * noisy.LAUNCH_S
    target.build(ATTENTION, "kernel")
    assert clock.spent() == durations.REFUSED_S
    for seed in (5, 6):
        target.catalogue.reply(Ask(ATTENTION, "review", "", "", frozenset(), "", seed))
    assert clock.spent() == sum(durations.thought_s(ATTENTION, "review", "", 0, s) for s in (5, 6))


def test_an_update_leads_to_the_next_version() -> None:
    """What was built before keeps its tables and runs on the firmware that is there now."""
    target = SimTarget("full")
    clock = target.clock = VirtualClock()
    old = baseline(target)
    later = target.updated(1)
    assert later.fingerprint() == SimTarget("1.1").fingerprint()
    assert later.clock is clock
    assert target.updated(9).fingerprint() == SimTarget("1.2").fingerprint()
    assert target.updated(0).fingerprint() == target.fingerprint()

    slower_sync = (V1_1.device.sync_alone - V1_0.device.sync_alone) / artifact.CLOCK_HZ
    assert later.truth(ATTENTION, old) == pytest.approx(target.truth(ATTENTION, old) + slower_sync)
    ffn = "decoder_feedforward"
    before, after = baseline(target, ffn), baseline(target.updated(2), ffn)
    assert V1_2.device.f4_table < V1_0.device.f4_table
    assert target.updated(2).truth(ffn, after) < 0.9 * target.updated(2).truth(ffn, before)
