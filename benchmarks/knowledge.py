"""What legality rules save, on the simulated NPU: `python -m benchmarks.knowledge`.

Two campaigns per seed, with rules and without, whose author makes slips of ten kinds between the
catalogue's good moves (`tests.support.stubborn`); run it from the root of a checkout. Device time
and builds are counted until the speed-up that the accepts claim, geometric mean, reaches the goal.
A build is wasted if it fails with a signature that a build of its kernel has failed with before.
"""

import argparse
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from actors.simulation import Simulation
from benchmarks.table import Row
from events.campaign import Campaign, KnowledgeSettings
from events.log import read
from events.projections.state import State
from events.vocabulary import CandidateExamined, FactLearned, Record
from scripts.campaign_file import load
from sim.rates import CALM
from tests.support.stubborn import StubbornTarget

GOAL = 9.293
"""The published geomean over the official baselines of the three kernels."""
FILE = Path("examples/twelve-days/campaign.toml")


@dataclass
class Tally:
    """What a campaign has spent so far."""

    device_s: float = 0.0
    hours: float = 0.0
    n_builds: int = 0
    """By screening."""
    n_wasted: int = 0
    n_refused: int = 0
    """Candidates that rules refused before the build."""
    n_false: int = 0
    """Candidates that break a rule and build."""
    n_experiments: int = 0
    """Builds by the keeper, most of them of small sources that are refused."""


@dataclass
class Course:
    """A campaign as its log tells it."""

    whole: Tally
    at_goal: Tally | None
    geomean: float
    n_rules: int
    n_refuted: int


def course(campaign: Campaign, seed: int, share: float) -> Course:
    """Run one campaign and read its log."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        run = Path(folder) / "run"
        target = StubbornTarget("1.0", share)
        outcome = Simulation(run, campaign, target, CALM, seed).finish()
        if outcome.violation:
            raise SystemExit(f"seed {seed}: {outcome.violation}")
        return _read(run)


def _read(run: Path) -> Course:
    state, tally, at_goal = State(), Tally(), None
    failed: set[tuple[str, str]] = set()
    first: Record | None = None
    for record in read(run):
        first = first or record
        state.apply(record)
        _count(tally, record, state, failed)
        tally.device_s = state.spending.settled.device_s
        tally.hours = (record.time_ns - first.time_ns) / 3600e9
        if at_goal is None and _geomean(state) >= GOAL:
            at_goal = Tally(**vars(tally))
    rules = [n for n, f in state.knowledge.facts.items() if isinstance(f, FactLearned) and f.trials]
    refuted = [n for n in rules if state.knowledge.states[n] == "refuted"]
    return Course(tally, at_goal, _geomean(state), len(rules), len(refuted))


def _count(tally: Tally, record: Record, state: State, failed: set[tuple[str, str]]) -> None:
    match record.event:
        case FactLearned(n_builds=n):
            tally.n_experiments += n
        case CandidateExamined() as event:
            was_built = any(report.stage == "build" for report in event.stages)
            tally.n_builds += was_built
            tally.n_refused += event.stages[-1].stage == "rule"
            tally.n_false += bool(event.breaks) and event.artifact is not None
            if event.signature is not None:
                sort = (state.tree.nodes[event.candidate].kernel, event.signature)
                tally.n_wasted += sort in failed
                failed.add(sort)
        case _:
            pass


def _geomean(state: State) -> float:
    best = [b.incumbent for b in state.tree.branches.values() if b.incumbent is not None]
    if not best:
        return 1.0
    return math.exp(math.fsum(math.log(state.tree.speedup(c)) for c in best) / len(best))


def _print(name: str, found: Course) -> None:
    print(
        f"\n{name}: geomean {found.geomean:.3f}, {found.n_rules} rules, {found.n_refuted} refuted"
    )
    spans = {"whole campaign": found.whole}
    if found.at_goal:
        spans[f"until {GOAL}x"] = found.at_goal
    for span, tally in spans.items():
        print(Row(f"  {span}: device seconds", f"{tally.device_s:,.0f}"))
        print(Row("    virtual hours", f"{tally.hours:.1f}"))
        print(Row("    builds by screening", f"{tally.n_builds:,}"))
        print(Row("    of them wasted on known failures", f"{tally.n_wasted:,}"))
        print(Row("    refused by rules, unbuilt", f"{tally.n_refused:,}"))
        print(Row("    false refusals found", f"{tally.n_false:,}"))
        print(Row("    experiments of the keeper", f"{tally.n_experiments:,}"))


def main() -> None:
    """Run the campaigns and print what each spent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="campaigns of each sort")
    parser.add_argument("--candidates", type=int, default=600, help="of each campaign")
    parser.add_argument("--share", type=float, default=0.5, help="of slips among the steps")
    parser.add_argument("--kernels", nargs="+", help="all three unless named")
    args = parser.parse_args()
    campaign = load(FILE)
    search = campaign.search.model_copy(update={"max_candidates": args.candidates})
    kernels = tuple(args.kernels or campaign.kernels)
    campaign = campaign.model_copy(update={"search": search, "kernels": kernels})
    n_wasted = {True: 0, False: 0}
    for seed in range(1, args.seeds + 1):
        for rules in (True, False):
            settings = KnowledgeSettings(rules=rules)
            found = course(campaign.model_copy(update={"knowledge": settings}), seed, args.share)
            n_wasted[rules] += found.whole.n_wasted
            _print(f"seed {seed}, rules {'on' if rules else 'off'}", found)
    if n_wasted[False]:
        less = 100 * (1 - n_wasted[True] / n_wasted[False])
        print(Row("\nfewer wasted builds with rules, percent", f"{less:.1f}", "90"))


if __name__ == "__main__":
    main()
