"""The noise of the simulated device has the statistics that its profile names."""

from dataclasses import replace

import numpy as np
import pytest

from sim.noise import QUIET, REAL, Floats, Job, KernelNoise, NoisyDevice, NoReadings

QKV, ATTENTION, FEEDFORWARD = (
    "sliding_project_qkv",
    "sliding_attention_output",
    "decoder_feedforward",
)
TRUTH = 100_000.0
N_JOBS = 1_500
ALL_FATES = replace(REAL, hang_rate=0, loss_rate=0)
"""The real profile without jobs that give nothing."""
STEADY = replace(ALL_FATES, outlier_rate=0)


def job(kernel: str, at_s: float = 0.0, idle_s: float = 0.0) -> Job:
    """Return a job of two equal arms, 12 launches of each, a minute long."""
    starts = [at_s + 5.0 * i for i in range(12)]
    return Job(kernel, (TRUTH, TRUTH), [0, 1] * 6, 2, starts, idle_s)


def readings(device: NoisyDevice, ask: Job, rng: np.random.Generator) -> Floats:
    """Return cycles of a job that succeeds."""
    answer = device.run(ask, rng)
    assert not isinstance(answer, NoReadings)
    return answer


def logs(kernel: str, seed: int = 1, every_s: float = 3_600) -> Floats:
    """Return log-deviations, (jobs, runs, launches), without first launches and outliers."""
    device, rng = NoisyDevice(STEADY, np.random.default_rng(seed)), np.random.default_rng(seed + 1)
    cycles = [readings(device, job(kernel, i * every_s), rng) for i in range(N_JOBS)]
    deviations = np.log(np.array(cycles) / TRUTH)
    return deviations[:, 2:]


@pytest.mark.parametrize("kernel", [QKV, FEEDFORWARD])
def test_launches_scatter_as_the_profile_says(kernel: str) -> None:
    """Within a job and an arm only the launch noise is left."""
    arm = logs(kernel)[:, ::2].reshape(N_JOBS, -1)
    sd = np.sqrt(arm.var(axis=1, ddof=1).mean())

    assert sd == pytest.approx(REAL.kernels[kernel].launch_sd, rel=0.06)


def test_launches_have_heavier_tails_than_a_normal_distribution() -> None:
    """Rules that hold for Gaussian noise alone must fail here."""
    arm = logs(QKV)[:, ::2].reshape(N_JOBS, -1)
    z = arm - arm.mean(axis=1, keepdims=True)

    assert (z**4).mean() / (z**2).mean() ** 2 > 4


@pytest.mark.parametrize("kernel", [QKV, FEEDFORWARD])
def test_an_arm_is_off_by_its_own_amount_in_every_job(kernel: str) -> None:
    """More launches in one job do not average it out: only more jobs do."""
    runs = logs(kernel)
    arms = runs[:, ::2].mean(axis=(1, 2)) - runs[:, 1::2].mean(axis=(1, 2))
    noise = REAL.kernels[kernel]
    expected = np.sqrt(2 * (noise.arm_sd**2 + noise.launch_sd**2 / 10))

    assert arms.std() == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize(("kernel", "low", "high"), [(QKV, 0.2, 0.5), (FEEDFORWARD, 0.55, 0.8)])
def test_arms_of_a_job_correlate_as_on_the_chip(kernel: str, low: float, high: float) -> None:
    """Pairing inside a job helps the feed-forward kernel and hardly the others."""
    runs = logs(kernel)
    a, b = runs[:, ::2].mean(axis=(1, 2)), runs[:, 1::2].mean(axis=(1, 2))

    assert low < np.corrcoef(a, b)[0, 1] < high


def test_drift_is_slow_common_to_kernels_and_of_unit_variance() -> None:
    """Hours apart nothing is left of it; minutes apart all of it is."""
    device = NoisyDevice(REAL, np.random.default_rng(3))
    hours = REAL.drift_s * np.arange(4_000) / 8
    path = np.array([device.condition(t) for t in hours])
    lag = [np.corrcoef(path[:-k], path[k:])[0, 1] for k in (1, 8, 40)]

    assert path.std() == pytest.approx(1, abs=0.1)
    assert lag == pytest.approx([np.exp(-1 / 8), np.exp(-1), 0], abs=0.12)


def test_drift_moves_the_readings_of_all_kernels() -> None:
    """Three kernels of one draw move together on the chip."""
    device = NoisyDevice(STEADY, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    times = [3_600.0 * i for i in range(N_JOBS)]
    medians = [
        [np.median(np.log(readings(device, job(kernel, t), rng))) for t in times]
        for kernel in (QKV, FEEDFORWARD)
    ]
    common = [device.condition(t) for t in times]

    assert np.corrcoef(medians[0], common)[0, 1] > 0.4
    assert np.corrcoef(medians[1], common)[0, 1] > 0.6


def test_drift_follows_from_seed_and_time_and_not_from_the_order_of_questions() -> None:
    """A run that was killed and resumed finds the device as it left it."""
    forward, backward = (NoisyDevice(REAL, np.random.default_rng(6)) for _ in range(2))
    times = [0.0, 1e4, 5e5, 9e5]

    assert [forward.condition(t) for t in times] == [backward.condition(t) for t in times[::-1]][
        ::-1
    ]


def test_attention_has_a_lower_tail() -> None:
    """The tenth percentile of the chip's launches lies 7 to 11 % below their median."""
    cycles = np.exp(logs(ATTENTION)).ravel()
    low = np.quantile(cycles, 0.1) / np.median(cycles)

    assert 0.89 <= low <= 0.93


@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [(QKV, 3_000, 5_000), (ATTENTION, -300, 300), (FEEDFORWARD, -6_000, 0)],
)
def test_the_first_launch_of_a_process_pays(kernel: str, low: float, high: float) -> None:
    """An arm that always goes first looks slower than it is, or faster."""
    device, rng = NoisyDevice(STEADY, np.random.default_rng(7)), np.random.default_rng(8)
    cycles = [readings(device, job(kernel), rng) for _ in range(N_JOBS)]
    extra = np.mean([c[0, 0] - c[0, 1] for c in cycles])

    assert low <= extra <= high


def test_an_idle_second_costs_much_and_sometimes_very_much() -> None:
    """A protocol that waits between launches measures its own waiting."""
    device, rng = NoisyDevice(STEADY, np.random.default_rng(9)), np.random.default_rng(10)
    busy, idle = (
        np.array([readings(device, job(ATTENTION, idle_s=s), rng)[0, 0] for _ in range(N_JOBS)])
        for s in (0.5, 1.5)
    )
    extra = idle - np.median(busy)

    assert 26_000 <= np.median(extra) <= 49_000
    assert (extra > 70_000).mean() == pytest.approx(REAL.stall_rate, abs=0.012)
    assert extra.max() < 2_100_000


def test_gross_outliers_are_as_many_and_as_large_as_on_the_chip() -> None:
    """0.7 % of the launches, 1.1 to 2.8 times too long."""
    profile = replace(QUIET, outlier_rate=REAL.outlier_rate)
    device, rng = NoisyDevice(profile, np.random.default_rng(11)), np.random.default_rng(12)
    factors = np.array([readings(device, job(QKV), rng) for _ in range(N_JOBS)]) / TRUTH
    outliers = factors[factors > 1.05]

    assert outliers.size / factors.size == pytest.approx(0.007, abs=0.0015)
    assert outliers.min() > 1.09
    assert outliers.max() < 2.85


def test_jobs_hang_and_vanish() -> None:
    """Blank medians come from jobs that gave nothing: they are an outcome of their own."""
    profile = replace(REAL, hang_rate=0.1, loss_rate=0.2)
    device, rng = NoisyDevice(profile, np.random.default_rng(13)), np.random.default_rng(14)
    answers = [device.run(job(QKV), rng) for _ in range(N_JOBS)]
    reasons = [a.reason for a in answers if isinstance(a, NoReadings)]

    assert reasons.count("hung") / N_JOBS == pytest.approx(0.1, abs=0.03)
    assert reasons.count("lost") / N_JOBS == pytest.approx(0.2, abs=0.04)


def test_the_same_seeds_give_the_same_readings() -> None:
    """A simulated campaign must be repeatable to the byte."""
    a, b = (
        readings(NoisyDevice(STEADY, np.random.default_rng(1)), job(QKV), np.random.default_rng(2))
        for _ in range(2)
    )

    assert (a == b).all()


def test_the_quiet_profile_shows_the_truth() -> None:
    """Tests that are not about noise should not fight it."""
    device = NoisyDevice(QUIET, np.random.default_rng(15))
    cycles = readings(device, job("any kernel", idle_s=10), np.random.default_rng(16))

    assert cycles == pytest.approx(TRUTH, rel=0.01)


def test_no_noise_at_all_is_the_truth_itself() -> None:
    """The noise adds nothing of its own."""
    device = NoisyDevice(replace(QUIET, other=KernelNoise(0, 0, 0)), np.random.default_rng(17))

    assert (readings(device, job(QKV), np.random.default_rng(18)) == TRUTH).all()
