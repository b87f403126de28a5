"""Ten rules that agents keep breaking are learned on the simulated NPU, in each of its versions."""

import random
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from actors.simulation import Simulation
from events.campaign import Campaign
from events.log import read
from events.predicates import breaks, words
from events.projections.state import replay
from events.vocabulary import CandidateExamined, FactLearned
from knowledge.rules import Failing, learn
from scripts.campaign_file import load
from sim.npu.toolchain import TOOLCHAINS
from sim.rates import CALM
from targets.protocol import BuildFailed
from targets.sim.target import SimTarget
from tests.support.npu_mutations import mutations
from tests.support.stubborn import SLIPS, StubbornTarget

KERNEL: Final = "sliding_attention_output"
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "twelve-days" / "campaign.toml"
N_AGAIN: Final = 12
"""Other slips of a kind that its rule is asked about."""
N_LEGAL: Final = 40
"""Legal changes of the baseline that no rule may refuse."""


def refusal(target: SimTarget, source: str) -> BuildFailed | None:
    built = target.build(KERNEL, source)
    return built if isinstance(built, BuildFailed) else None


@pytest.mark.parametrize("version", TOOLCHAINS)
def test_ten_rules_are_learned_from_one_failure_each(version: str) -> None:
    """Each refuses further slips of its kind, with other numbers and names; none what is legal."""
    target = SimTarget(version)
    build, baseline = partial(refusal, target), target.sources(KERNEL).baseline
    changed = (source for _, source in mutations(baseline))
    legal = list(islice((s for s in changed if build(s) is None), N_LEGAL))
    draw = random.Random(1)
    n_refused = 0
    for code, slip in SLIPS.items():
        slips = [s for _ in range(1 + N_AGAIN) if (s := slip(baseline, draw))]
        failed = build(slips[0])
        assert failed is not None
        assert failed.signature.startswith(code)

        found = learn(Failing(failed.signature, slips[:1], [baseline]), build, target.normalize)

        assert found.predicate is not None, f"{code}: {found.doubt}"
        refused = [breaks(found.predicate, words(target.normalize(s))) for s in slips]
        assert refused[0]
        n_refused += sum(refused[1:])
        false = [s for s in legal if breaks(found.predicate, words(target.normalize(s)))]
        assert false == [], f"{code} refuses what builds: {found.predicate}"
    assert n_refused >= 0.9 * N_AGAIN * len(SLIPS)


def campaign(n: int) -> Campaign:
    """One kernel, ``n`` candidates."""
    example = load(EXAMPLE)
    search = example.search.model_copy(update={"max_candidates": n})
    return example.model_copy(update={"kernels": (KERNEL,), "search": search})


@pytest.mark.timeout(600)
def test_a_campaign_with_a_stubborn_author_builds_less_and_less_in_vain(tmp_path: Path) -> None:
    """What it learns in the first half it does not build in the second; audit agrees with all."""
    author = StubbornTarget("1.0", share=0.8, slip_s=3600.0)
    outcome = Simulation(tmp_path / "run", campaign(60), author, CALM, 1).finish()
    assert outcome.violation is None

    records = list(read(tmp_path / "run"))
    knowledge = replay(records).knowledge
    learned = [f for f in knowledge.facts.values() if isinstance(f, FactLearned) and f.predicate]
    assert len(learned) >= 3
    examined = [r.event for r in records if isinstance(r.event, CandidateExamined)]
    stages = [event.stages[-1].stage for event in examined if not event.stages[-1].passed]
    middle = len(stages) // 2
    assert stages[:middle].count("rule") < stages[middle:].count("rule")
    assert sum(hits.n_refused for hits in knowledge.hits.values()) > 0
    assert not any(event.breaks and event.artifact for event in examined)
