"""Run campaigns in virtual time, with faults, and check what must hold after every record."""

import argparse
import json
import multiprocessing
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from actors.simulation import Outcome, Simulation
from events.campaign import Acceptance, Campaign, Search
from scripts.campaign_file import load, load_rates
from scripts.runs import FAILED, UsageError, without_traceback
from sim.faults import DAY_S
from sim.rates import CALM, Rates
from targets.protocol import VirtualTarget
from targets.registry import load_target

TARGET = "sim"
MAX_CANDIDATES = 3000


@dataclass(frozen=True)
class World:
    """What all campaigns of one call have in common."""

    campaign: Campaign
    rates: Rates

    def simulate(self, seed: int) -> tuple[Outcome, Path | None]:
        """Run one campaign; return how it went, and its run folder if something did not hold."""
        structlog.configure(
            processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        folder = Path(tempfile.mkdtemp(prefix="kernelwright-simulated-"))
        target = _target(self.campaign)
        outcome = Simulation(folder / "run", self.campaign, target, self.rates, seed).finish()
        if outcome.violation:
            return outcome, folder / "run"
        shutil.rmtree(folder)
        return outcome, None


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Simulate; return 0 when all held, 1 when something did not."""
    args = _parser().parse_args(argv)
    seeds = _seeds(args.seeds)
    if args.days <= 0 or args.jobs < 1:
        raise UsageError("--days should be greater than 0, and --jobs 1 or more")
    world = World(_campaign(args.what, args.days), _rates(args.faults))
    began_s, outcomes = time.perf_counter(), []
    for outcome, run in _all(world, seeds, args.jobs):
        outcomes.append(outcome)
        again = _again(args, outcome.seed) if run else None
        print(
            _json(outcome, run, again) if args.as_json else _text(outcome, run, again), flush=True
        )
    took_s = time.perf_counter() - began_s
    print(_total(outcomes, took_s), file=sys.stderr if args.as_json else sys.stdout)
    return FAILED if any(outcome.violation for outcome in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright simulate", description=__doc__)
    parser.add_argument(
        "what", type=Path, nargs="?", metavar="CAMPAIGN.toml",
        help=f"campaign file (default: every kernel of the target {TARGET!r})",
    )  # fmt: skip
    parser.add_argument(
        "--days", type=float, default=12.0, metavar="D", help="virtual days at most (default: 12)"
    )
    parser.add_argument(
        "--seeds", default="1", metavar="A..B",
        help="one campaign per seed from A to B (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--faults", type=Path, metavar="FILE|none",
        help="TOML file of fault rates, or none (default: the rates of docs/simulate.md)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes to use (default: 1)"
    )
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="a JSON line per campaign on stdout"
    )
    return parser


def _seeds(text: str) -> range:
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    seeds = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not seeds:
        raise UsageError(f"--seeds is {text!r}; it should be A..B, with B no less than A")
    return seeds


def _campaign(what: Path | None, days: float) -> Campaign:
    if what is None:
        campaign = Campaign(
            name="simulated",
            target=TARGET,
            kernels=load_target(TARGET, Campaign.model_fields["preset"].default).kernels(),
            search=Search(max_candidates=MAX_CANDIDATES),
            acceptance=Acceptance(pairs_per_job=1),  # its arms are off by a job's own amount
        )
    else:
        campaign = load(what)
    for name, model in campaign.answering().items():
        if model.provider != "catalogue":
            raise UsageError(
                f"the provider of 'models.{name}' is {model.provider!r}; "
                "simulate takes the catalogue only, "
                "since a model's replies do not follow from a seed"
            )
    _target(campaign)
    budget = campaign.budget
    wall_s = min(days * DAY_S, budget.wall_s or days * DAY_S)
    return campaign.model_copy(update={"budget": budget.model_copy(update={"wall_s": wall_s})})


def _target(campaign: Campaign) -> VirtualTarget:
    target = load_target(campaign.target, campaign.preset)
    if not isinstance(target, VirtualTarget):
        reason = f"target {campaign.target!r} works in real time"
        raise UsageError(f"{reason}; simulate takes one that has a clock, such as {TARGET!r}")
    return target


def _rates(file: Path | None) -> Rates:
    if file is None:
        return Rates()
    return CALM if str(file) == "none" else load_rates(file)


def _all(world: World, seeds: range, n_jobs: int) -> Iterator[tuple[Outcome, Path | None]]:
    if n_jobs == 1:
        yield from map(world.simulate, seeds)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, spawn) as pool:
        yield from pool.map(world.simulate, seeds)


# ---- what is said --------------------------------------------------------------------------


def _again(args: argparse.Namespace, seed: int) -> str:
    """The command that simulates one campaign again."""
    words = ["kernelwright", "simulate", *([str(args.what)] if args.what else [])]
    words += ["--days", f"{args.days:g}", "--seeds", f"{seed}..{seed}"]
    words += ["--faults", str(args.faults)] if args.faults else []
    return shlex.join(words)


def _json(outcome: Outcome, run: Path | None, again: str | None) -> str:
    return json.dumps({**asdict(outcome), "run": str(run) if run else None, "again": again})


def _text(outcome: Outcome, run: Path | None, again: str | None) -> str:
    said = (
        f"seed {outcome.seed}: {outcome.days:.2f} days, {outcome.n_candidates} candidates, "
        f"{outcome.n_records} records, {outcome.n_processes} processes"
    )
    if again is None:
        return said
    return f"{said}\n  VIOLATION {outcome.violation}\n  run folder: {run}\n  again: {again}"


def _total(outcomes: Sequence[Outcome], took_s: float) -> str:
    days = sum(outcome.days for outcome in outcomes)
    struck: Counter[str] = Counter()
    for outcome in outcomes:
        struck.update(outcome.n_struck)
    faults = ", ".join(f"{n} {kind}" for kind, n in struck.items() if n) or "none"
    n_violated = sum(outcome.violation is not None for outcome in outcomes)
    return (
        f"{len(outcomes)} campaigns, {days:.1f} virtual days in {took_s:.0f} s: "
        f"{days / took_s:.2g} days per second\nfaults: {faults}\nviolations: {n_violated}"
    )
