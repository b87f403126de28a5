"""Microbenchmarks on this machine's processor, in a run: what they must say wherever it is."""

from math import isfinite
from pathlib import Path

import pytest

from decisions.device import is_wanted_probe
from decisions.fitting import RESIDUAL
from decisions.policy import IN_FORCE
from events.log import read
from events.projections.state import State, replay
from events.vocabulary import (
    FactLearned,
    JobFailed,
    MeasurementRequested,
    Record,
    RunFinished,
    RunResumed,
)
from scripts import audit, knowledge, prompts, run
from tests.support.cli import campaign_file

pytestmark = pytest.mark.device

FAMILIES = {"passes", "rows", "f8", "f4", "stream", "misses", "overlap"}
Costs = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run that gives microbenchmarks all the time they may want."""
    tmp = tmp_path_factory.mktemp("probes")
    more = "\n[knowledge]\nprobe_share = 1.0\n"
    file = campaign_file(tmp, "sliding_attention_output", max_candidates=1, more=more)
    assert run.main([str(file), "--local", "--quiet", "--out", str(tmp / "run")]) == 0
    return tmp / "run"


@pytest.fixture(scope="module")
def state(folder: Path) -> State:
    """What the run knows at its end."""
    return replay(read(folder))


@pytest.fixture(scope="module")
def costs(state: State) -> Costs:
    """Seconds per thing, by family."""
    facts = state.knowledge.facts.values()
    of_probes = [f for f in facts if isinstance(f, FactLearned) and f.topic == "microbenchmark"]
    return {_family(fact): fact.value for fact in of_probes}


def _family(fact: FactLearned) -> str:
    return fact.claim.partition(":")[0].split()[-1]


def of(costs: Costs, *names: str) -> list[dict[str, float]]:
    """What families say, unless this machine was too busy to time them."""
    if missing := set(names) - costs.keys():
        pytest.skip(f"the machine was too busy to time {', '.join(sorted(missing))}")
    return [costs[name] for name in names]


def test_every_family_becomes_a_fact_unless_the_machine_is_too_busy(
    folder: Path, state: State, costs: Costs
) -> None:
    """No job fails for what a program of theirs does."""
    jobs: dict[int, str] = {}
    for record in read(folder):
        if isinstance(record.event, MeasurementRequested):
            jobs[record.event.job] = record.event.microbenchmark
        elif isinstance(record.event, JobFailed) and jobs[record.event.job]:
            assert "too busy" in record.event.reason
    failed = {name for name, probed in state.ledger.probes.items() if probed.seq < 0}

    assert costs
    assert costs.keys() | failed == FAMILIES
    assert not costs.keys() & failed


def test_every_cost_has_its_doubt(costs: Costs) -> None:
    """Intervals hold what they are about, and the fit leaves less than the times themselves."""
    for values in costs.values():
        assert isfinite(values[RESIDUAL])
        assert 0 <= values[RESIDUAL] < 0.5
        for thing in (name for name in values if f"{name} high" in values):
            assert 0 <= values[f"{thing} low"] <= values[thing] <= values[f"{thing} high"]


def test_bytes_that_lie_together_are_no_slower(costs: Costs) -> None:
    """Runs of 64 KiB against lines anywhere."""
    (stream,) = of(costs, "stream")

    assert stream["MB in runs of 65536 B"] < 1.1 * stream["MB in runs of 64 B"]
    assert 0 < stream["launch"] < 50e-6


def test_loads_that_wait_for_each_other_are_slower(costs: Costs) -> None:
    """A processor has many loads under way; a chain of them shows the time of one."""
    (misses,) = of(costs, "misses")

    assert misses["1000 lines one after the other"] > 2 * misses["1000 lines here and there"]


def test_loads_and_decoding_at_once_take_no_longer_than_one_after_the_other(costs: Costs) -> None:
    """With half as much again for what else this machine does."""
    (overlap,) = of(costs, "overlap")

    both = overlap["MB loaded"] + overlap["MB decoded"]
    assert overlap["MB loaded and decoded"] < 1.5 * both


def test_independent_work_is_faster_than_work_that_waits(costs: Costs) -> None:
    """One sum is one chain of additions; four rows share the loads of the activations."""
    passes, rows = of(costs, "passes", "rows")

    one, many = (passes[f"1000 elements squared in {n}"] for n in ("one sum", "16 sums"))
    assert one > 2 * many
    assert rows["1000 products row by row"] > rows["1000 products 4 rows at a time"]


def test_people_and_agents_are_told(
    folder: Path, costs: Costs, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of facts and a prompt have the same sentence; audit derives it all again."""
    assert knowledge.main([str(folder), "--kind", "microbenchmark"]) == 0
    listed = capsys.readouterr().out
    assert prompts.main(["show", "architect", "--run", str(folder)]) == 0
    shown = capsys.readouterr().out

    for text in (listed, shown):
        assert all(f"The device takes, says the microbenchmark {name}: " in text for name in costs)

    assert audit.main([str(folder)]) == 0


def test_another_compiler_makes_all_of_them_stale_and_wanted_again(
    folder: Path, costs: Costs
) -> None:
    """What code takes is a matter of who compiled it."""
    state = State()
    for record in read(folder):
        if isinstance(record.event, RunFinished):
            break
        state.apply(record)
    assert not any(is_wanted_probe(state, name) for name in costs)

    another = {**state.toolchain, "compiler": "another"}
    resumed = RunResumed(versions={}, rules=dict(IN_FORCE), toolchain=another)
    state.apply(Record(state.seq + 1, 0, "director", resumed))

    facts = state.knowledge.facts.items()
    of_probes = [n for n, fact in facts if getattr(fact, "topic", "") == "microbenchmark"]
    assert len(of_probes) == len(costs)
    assert {state.knowledge.states[n] for n in of_probes} == {"stale"}
    assert all(is_wanted_probe(state, name) for name in FAMILIES)
