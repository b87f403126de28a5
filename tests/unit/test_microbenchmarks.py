"""Microbenchmarks say what things cost: fits against the truth, and who may use them."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.claims import costs_claim
from decisions.device import MAX_PROBE_FAILURES, is_wanted_probe
from decisions.fitting import RESIDUAL, costs, is_fittable
from decisions.plan import decide
from decisions.samples import TimedRun, rounds, spreads
from events.log import read
from events.projections.state import State
from events.vocabulary import (
    Decision,
    FactLearned,
    MeasurementRequested,
    Request,
    StateDigested,
    Timing,
)
from sim.npu.kernels import SIGNATURES
from sim.npu.latency import run_rate
from sim.npu.toolchain import V1_0
from targets.protocol import Built, Documented, Measured, Microbenchmark, Probed
from targets.sim.artifact import CLOCK_HZ
from targets.sim.target import SimTarget
from tests.support.documented import DocumentedTarget
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign

KERNELS = tuple(SIGNATURES)


def times_s(target: SimTarget, kernel: str, family: Microbenchmark, *, seed: int) -> list[Timing]:
    """What a probe job on the simulated device says."""
    arms = []
    for point in family.points.values():
        built = target.build(kernel, point.source)
        assert isinstance(built, Built), (family.name, built)
        arms.append(built.artifact)
    unchecked, n = [False] * len(arms), len(arms)
    got = target.measure(
        kernel, arms, rounds(n),
        group=n, launches=1, checked=unchecked, seed=seed, limit_s=math.inf,
    )  # fmt: skip
    assert isinstance(got, Measured), got
    runs = [TimedRun(run.arm, run.launches_s, run.probe_s) for run in got.runs]
    return [
        Timing(counts=dict(point.counts), time_s=spread.median)
        for point, spread in zip(family.points.values(), spreads(runs, n), strict=True)
    ]


def fitted(preset: str, kernel: str, *, seed: int = 5) -> dict[str, dict[str, float]]:
    """Device cycles per thing, and the residuals, by microbenchmark."""
    target = SimTarget(preset)
    found = {}
    for family in target.microbenchmarks(kernel):
        values = costs(times_s(target, kernel, family, seed=seed))
        found[family.name] = {k: v if k == RESIDUAL else v * CLOCK_HZ for k, v in values.items()}
    return found


def test_the_simulated_npu_has_documents_and_microbenchmarks() -> None:
    """Both are optional in the protocol; the fake target has neither."""
    target = SimTarget("quiet")

    assert isinstance(target, Documented)
    assert isinstance(target, Probed)
    assert not isinstance(FakeTarget(), Documented | Probed)
    assert ["manual" in d.text or "kernel" in d.text for d in target.documents()] == [True]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_quiet_device_tells_its_true_costs(kernel: str) -> None:
    """Fixed costs and rates of the device model, which no program of the probes names."""
    found, device = fitted("quiet", kernel), V1_0.device

    near = {
        ("loads", "small load"): device.load_fixed + 27,
        ("passes", "pass on main"): device.pass_fixed,
        ("passes", "pass on sub"): device.pass_fixed,
        ("passes", "1000 elements on main"): 1000 / V1_0.rates.vector_elements * device.work_factor,
        ("lookup", "lookup table"): device.f8_table,
        ("lookup", "lookup pass"): device.pass_fixed,
    }
    for (family, thing), truth in near.items():
        assert found[family][thing] == pytest.approx(truth, rel=0.02), (family, thing)
    assert all(values[RESIDUAL] < 0.01 for values in found.values())
    stream, run = found["stream"], "MB in runs of {} B"
    for n_bytes in (64, 128):
        slower = stream[run.format(n_bytes)] / stream[run.format(256)]
        truth = run_rate(256, device) / run_rate(n_bytes, device)
        assert slower == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_quiet_device_tells_which_engines_work_side_by_side(kernel: str) -> None:
    """DMA works beside the tensor unit; main and sub are one unit, whatever the schedule says."""
    overlap = fitted("quiet", kernel)["overlap"]

    assert overlap["loads beside main"] == pytest.approx(overlap["loads alone"], rel=0.01)
    both = overlap["main alone"] + overlap["sub alone"]
    assert overlap["main beside sub"] == pytest.approx(both, rel=0.01)


def test_noisy_readings_leave_the_truth_in_the_intervals() -> None:
    """Under the noise of the real device nine in ten 95 % intervals hold, and none is far off."""
    kernel = "sliding_attention_output"
    truth = fitted("quiet", kernel)
    held, near = [], []
    for seed in (1, 2, 3):
        for family, values in fitted("1.0", kernel, seed=seed).items():
            for thing in (t for t in values if f"{t} high" in values):
                held.append(
                    values[f"{thing} low"] <= truth[family][thing] <= values[f"{thing} high"]
                )
                near.append(values[thing] / truth[family][thing])

    assert sum(held) >= 0.85 * len(held)
    assert sorted(near)[len(near) // 10] > 0.9
    assert sorted(near)[-len(near) // 10] < 1.1


def test_an_unaligned_run_is_seen_to_cost_a_third_more() -> None:
    """The manual does not say it: a run that is no multiple of 256 bytes is slower."""
    stream = fitted("1.0", "decoder_feedforward")["stream"]

    ratio = stream["MB in runs of 1920 B"] / stream["MB in runs of 3840 B"]
    assert 1.15 < ratio < 1.4


# ---- the fit --------------------------------------------------------------------------------


def timings(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[Timing]:
    names = "abcd"
    return [
        Timing(counts=dict(zip(names, row, strict=False)), time_s=t)
        for row, t in zip(rows, seconds, strict=True)
    ]


DESIGN = ((1, 0, 0), (1, 1, 0), (1, 4, 0), (1, 0, 2), (1, 3, 5), (1, 2, 1))


@given(st.tuples(*[st.floats(1e-9, 1e-3)] * 3))
def test_exact_times_give_their_costs_back(truth: tuple[float, ...]) -> None:
    """To six digits, with nothing left over."""
    seconds = [sum(n * cost for n, cost in zip(row, truth, strict=True)) for row in DESIGN]
    found = costs(timings(DESIGN, seconds))

    assert found["a"] == pytest.approx(truth[0], rel=1e-3)
    assert found[RESIDUAL] < 1e-6


def test_no_cost_is_negative() -> None:
    """A thing that seems to save time is noise, or the model is wrong: the residual says so."""
    found = costs(timings(DESIGN, [1.0, 0.8, 0.7, 1.0, 1.0, 0.9]))

    assert found["b"] == 0.0
    assert found["b high"] > 0.0
    assert found[RESIDUAL] > 0.01


def test_programs_that_do_not_tell_things_apart_are_refused() -> None:
    """Without a spare program there is no residual, and without rank no answer."""
    few, alike = DESIGN[:3], tuple((1, n, 2 * n) for n in range(6))

    assert not is_fittable(timings(few, [1.0] * 3))
    assert not is_fittable(timings(alike, [1.0] * 6))
    assert is_fittable(timings(DESIGN, [1.0] * 6))
    with pytest.raises(ValueError, match="do not tell 3 things apart"):
        costs(timings(alike, [1.0] * 6))


def test_a_claim_gives_each_cost_with_its_doubt() -> None:
    """One sentence; a cost that may be nothing is given by its upper end."""
    value = {
        RESIDUAL: 0.012,
        "launch": 8e-7, "launch low": 7.2e-7, "launch high": 8.8e-7,
        "pass": 0.0, "pass low": 0.0, "pass high": 2e-9,
    }  # fmt: skip

    assert costs_claim("passes", value) == (
        "The device takes, says the microbenchmark passes: launch 800 ns +-10%; pass under 2 ns "
        "(their sum is off by 1.2%)."
    )


# ---- in a run -------------------------------------------------------------------------------


def test_a_run_learns_what_things_cost(tmp_path: Path) -> None:
    """Once, about the whole target; a family that never gives times is left alone."""
    state = begin(tmp_path, campaign(max_candidates=4), DocumentedTarget())
    facts = [
        f
        for f in state.knowledge.facts.values()
        if isinstance(f, FactLearned) and f.topic == "microbenchmark"
    ]

    assert [fact.kernel for fact in facts] == [""]
    assert facts[0].value["thing"] == pytest.approx(0.05, rel=0.1)
    assert all(facts[0] in state.knowledge.of(k).values() for k in ("alpha", "beta"))
    assert state.ledger.probes["broken"].failures == MAX_PROBE_FAILURES
    assert not is_wanted_probe(state, "broken")


def test_microbenchmarks_take_no_more_than_their_share(tmp_path: Path) -> None:
    """Every probe job leaves them within the share, with all that it may take."""
    ticks = iter(range(10**6))
    settings, share = campaign(), 0.1
    some = settings.knowledge.model_copy(update={"probe_share": share})
    settings = settings.model_copy(update={"knowledge": some})
    begin(tmp_path, settings, DocumentedTarget(), clock=lambda: float(next(ticks)))
    state, asked = State(), 0
    for record in read(tmp_path):
        event = record.event
        if isinstance(event, MeasurementRequested) and event.purpose == "probe":
            asked += 1
            used = share * state.spending.settled.device_s
            assert state.ledger.probe_s + event.reserved.device_s <= used
        state.apply(record)

    assert asked == 1 + MAX_PROBE_FAILURES


def test_a_share_of_nothing_means_no_microbenchmarks(tmp_path: Path) -> None:
    """The setting is the operator's."""
    settings = campaign(max_candidates=4)
    none = settings.knowledge.model_copy(update={"probe_share": 0.0})
    ticks = iter(range(10**6))
    state = begin(
        tmp_path,
        settings.model_copy(update={"knowledge": none}),
        DocumentedTarget(),
        clock=lambda: float(next(ticks)),
    )

    assert not state.ledger.probes


def test_another_toolchain_is_measured_anew(tmp_path: Path) -> None:
    """What things cost is a matter of the firmware too."""
    state = begin(tmp_path, campaign(max_candidates=4), DocumentedTarget())
    assert not is_wanted_probe(state, "things")

    state.ledger.outdate()
    assert is_wanted_probe(state, "things")


def test_figures_of_probes_decide_about_no_candidate(tmp_path: Path) -> None:
    """A probe may open an idea, by way of a prompt; no decision reads what it says.

    The log is folded with the costs falsified a thousandfold, and every decision is asked again.
    """
    begin(tmp_path, campaign(max_candidates=12), DocumentedTarget())
    state, n_decided, n_false = State(), 0, 0
    for record in read(tmp_path):
        event = record.event
        if isinstance(event, Decision | Request):
            due = decide(state)
            n_decided += 1
            assert due is not None
            assert due.event == event or isinstance(event, StateDigested)
        if isinstance(event, FactLearned) and event.topic == "microbenchmark":
            value = {name: 1000 * x for name, x in event.value.items()}
            record = record._replace(event=event.model_copy(update={"value": value}))
            n_false += 1
        state.apply(record)

    assert n_false == 1
    assert n_decided > 100
