"""What the acceptance test reaches, simulated with fixed seeds, beside what it must reach.

Run ``python -m benchmarks.acceptance --quick`` (half a minute) or without ``--quick`` (minutes).
Times are logarithms in per cent; a measurement is one run of one arm.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import chip
from benchmarks.campaigns import (
    Device,
    Result,
    mix,
    oracle,
    paired,
    stored,
    with_price_stop,
)
from benchmarks.noise import MODELS, Floats, Rng
from benchmarks.repeated import (
    POLICY,
    cross_check,
    false_accepts,
    limit_pairs,
    null_effects,
    paired_false_accepts,
    pairs_to_accept,
    stopping_pairs,
    stops,
    stored_false_accepts,
)
from benchmarks.rules import PAIR_RULES, RUN_RULES

MIN_BOUNDED = 7
"""Pairs before which an interval has no ends, so that its cover says nothing."""
MOST_PAIRS = 3
"""That a campaign may take in one job."""


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    tests: int
    """Repetitions of a test of equal candidates, per noise model."""
    pairs: int
    """Pairs after which such a test is called off."""
    others: int
    """Repetitions of such a test by another rule, and on the simulated chip."""
    gains: int
    """Repetitions of a test of a gain."""
    stops: int
    """Candidates per noise model and effect through ``judge``."""
    candidates: int
    """Candidates of a campaign."""
    campaigns: int
    """Campaigns per budget."""


QUICK = Size(20_000, 60, 1_000, gains=2_000, stops=40, candidates=1_000, campaigns=1)
FULL = Size(20_000, 300, 20_000, gains=20_000, stops=400, candidates=3_000, campaigns=8)


class Row(NamedTuple):
    """One figure."""

    what: str
    target: str
    """What it must reach; "-" for what is there to compare with."""
    value: float
    note: str = ""


def null_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """False accepts per noise model, and the check of the vector form."""
    odd = 0
    for name, noise in MODELS.items():
        share = false_accepts(noise, rng, size.tests, size.pairs)
        yield Row(f"false accepts, {name}", "<= 0.0025", share)
        effects, scale_ = null_effects(noise, rng, (40, size.pairs))
        odd += cross_check(effects - 0.5 * scale_, scale_, POLICY.alpha)
    yield Row("tests where vector form and capital() differ", "0", odd)


def chip_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """False accepts on the simulated chip, by the pairs of a job."""
    for kernel in chip.KERNELS:
        for per_job in (1, MOST_PAIRS):
            effects, scale_ = chip.null_effects(kernel, per_job, rng, (size.others, 60))
            share = (stopping_pairs(effects, scale_, POLICY.alpha) > 0).mean()
            what = f"false accepts, {kernel}, {per_job} a job"
            yield Row(what, "<= 0.0025", float(share), f"pair scale {scale_:.2f} %")


def rule_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """False accepts of other rules per noise model."""
    for name, noise in MODELS.items():
        for rule, (n, paired_rule) in PAIR_RULES.items():
            share = paired_false_accepts(noise, rng, (size.others, n), paired_rule)
            yield Row(f"false accepts, {name}, {rule}", "-", share)
        for rule, (n, run_rule) in RUN_RULES.items():
            share = stored_false_accepts(noise, rng, (size.others, n), run_rule)
            yield Row(f"false accepts, {name}, {rule}", "-", share)


def power_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """Pairs that a gain takes, in units of the limit where there is one."""
    for effect, target, n_pairs in ((-0.25, "<= 1.20", 2000), (-0.5, "<= 1.35", 600)):
        mean = sum(pairs_to_accept(rng, effect, size.gains // 10, n_pairs) for _ in range(10)) / 10
        what = f"pairs over the limit at {effect:g} %"
        yield Row(what, target, mean / limit_pairs(effect), f"{mean:.0f} pairs")
    for effect in (-2.0, -3.0, -100.0):
        mean = pairs_to_accept(rng, effect, size.gains, 60)
        yield Row(f"pairs to accept {effect:g} %", "<= 10", mean)


def stop_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """Measurements to drop a slower candidate, and cover of the interval wherever it stops."""
    for effect, target in ((1.0, "<= 4.0"), (3.0, "<= 2.2")):
        ended = stops(MODELS["Gaussian"], rng, effect, POLICY.start_price, size.stops)
        runs = 2 * sum(stop.n_pairs for stop in ended) / len(ended)
        yield Row(f"measurements to drop {effect:+g} %", target, runs)
    for name in ("Gaussian", "t3", "random walk", "all together"):
        ended = [
            stop
            for effect in (-2.0, -0.6, 0.0)
            for stop in stops(MODELS[name], rng, effect, 1e-9, size.stops // 4)
            if stop.n_pairs >= MIN_BOUNDED
        ]
        cover = sum(stop.covered for stop in ended) / len(ended)
        yield Row(f"interval cover at the stop, {name}", ">= 0.95", cover)


Rule = Callable[[Floats, Device], Result]


def campaign_rows(size: Size, seed: int) -> Iterator[Row]:
    """Gain captured by every rule on the same candidates and the same device."""
    for per, target in ((10, ">= 0.87"), (5, ">= 0.80")):
        for name, rule in _rules(per).items():
            results = [_campaign(rule, size, per, seed + i) for i in range(size.campaigns)]
            captured = sum(found.captured for found in results) / len(results)
            n_false = sum(found.n_false for found in results) / len(results)
            goal = target if name == "price stop" else "-"
            what = f"captured at {per} a candidate, {name}"
            yield Row(what, goal, captured, f"{n_false:.2f} false accepts")


def _rules(per: int) -> dict[str, Rule]:
    """All rules by name; those on stored runs spread ``per`` measurements a candidate evenly."""
    n_runs = 2 * (per // 2)
    others: dict[str, Rule] = {
        name: partial(paired, rule=rule, n=n) for name, (n, rule) in PAIR_RULES.items()
    }
    others |= {
        name.removesuffix(" of 7"): partial(stored, rule=rule, n=n_runs)
        for name, (_, rule) in RUN_RULES.items()
    }
    return {"price stop": with_price_stop, **others, "omniscient oracle": oracle}


def _campaign(rule: Rule, size: Size, per: int, seed: int) -> Result:
    effects = mix(np.random.default_rng([seed, 0]), size.candidates)
    noise, rng = MODELS["all together"], np.random.default_rng([seed, 1])
    return rule(effects, Device(noise, rng, per * size.candidates))


def rows(size: Size) -> Iterator[Row]:
    """All figures, from fixed seeds."""
    yield from null_rows(size, np.random.default_rng(1))
    yield from power_rows(size, np.random.default_rng(2))
    yield from stop_rows(size, np.random.default_rng(3))
    yield from chip_rows(size, np.random.default_rng(5))
    yield from rule_rows(size, np.random.default_rng(6))
    yield from campaign_rows(size, 4)


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute")
    size = QUICK if parser.parse_args(arguments).quick else FULL
    print(f"{'':56} {'target':>10}  reached")
    for what, target, value, note in rows(size):
        print(f"{what:56} {target:>10}  {value:<8.4g}{note}".rstrip(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
