"""What the acceptance test reaches, simulated with fixed seeds, beside what it must reach.

Run ``python -m benchmarks.acceptance --quick`` (half a minute) or without ``--quick`` (minutes).
Times are logarithms in per cent; a measurement is one run of one arm.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.campaigns import (
    Device,
    Result,
    keep_if_lower,
    mix,
    oracle,
    stored_welch,
    three_of_three,
    with_price_stop,
)
from benchmarks.noise import MODELS, Floats, Rng
from benchmarks.repeated import (
    POLICY,
    cross_check,
    false_accepts,
    limit_pairs,
    null_effects,
    pairs_to_accept,
    stops,
)

MIN_BOUNDED = 7
"""Pairs before which an interval has no ends, so that its cover says nothing."""


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    tests: int
    """Repetitions of a test of equal candidates, per noise model."""
    pairs: int
    """Pairs after which such a test is called off."""
    gains: int
    """Repetitions of a test of a gain."""
    stops: int
    """Candidates per noise model and effect through ``judge``."""
    candidates: int
    """Candidates of a campaign."""
    campaigns: int
    """Campaigns per budget."""


QUICK = Size(tests=20_000, pairs=60, gains=2_000, stops=40, candidates=1_000, campaigns=1)
FULL = Size(tests=20_000, pairs=300, gains=20_000, stops=400, candidates=3_000, campaigns=8)

Row = tuple[str, str, str]
"""What, target, reached."""


def null_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """False accepts per noise model, and the check of the vector form."""
    odd = 0
    for name, noise in MODELS.items():
        share = false_accepts(noise, rng, size.tests, size.pairs)
        yield f"false accepts, {name}", "<= 0.0025", f"{share:.4f}"
        effects, scale_ = null_effects(noise, rng, (40, size.pairs))
        odd += cross_check(effects - 0.5 * scale_, scale_, POLICY.alpha)
    yield "tests where vector form and capital() differ", "0", str(odd)


def power_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """Pairs that a gain takes, in units of the limit where there is one."""
    for effect, target, n_pairs in ((-0.25, "<= 1.20", 2000), (-0.5, "<= 1.35", 600)):
        mean = sum(pairs_to_accept(rng, effect, size.gains // 10, n_pairs) for _ in range(10)) / 10
        ratio = mean / limit_pairs(effect)
        yield f"pairs over the limit at {effect:g} %", target, f"{ratio:.2f} ({mean:.0f} pairs)"
    for effect in (-2.0, -3.0, -100.0):
        mean = pairs_to_accept(rng, effect, size.gains, 60)
        yield f"pairs to accept {effect:g} %", "<= 10", f"{mean:.1f}"


def stop_rows(size: Size, rng: Rng) -> Iterator[Row]:
    """Measurements to drop a slower candidate, and cover of the interval wherever it stops."""
    for effect, target in ((1.0, "<= 4.0"), (3.0, "<= 2.2")):
        ended = stops(MODELS["Gaussian"], rng, effect, POLICY.start_price, size.stops)
        runs = 2 * sum(stop.n_pairs for stop in ended) / len(ended)
        yield f"measurements to drop {effect:+g} %", target, f"{runs:.1f}"
    for name in ("Gaussian", "t3", "random walk", "all together"):
        ended = [
            stop
            for effect in (-2.0, -0.6, 0.0)
            for stop in stops(MODELS[name], rng, effect, 1e-9, size.stops // 4)
            if stop.n_pairs >= MIN_BOUNDED
        ]
        cover = sum(stop.covered for stop in ended) / len(ended)
        yield f"interval cover at the stop, {name}", ">= 0.95", f"{cover:.3f}"


def campaign_rows(size: Size, seed: int) -> Iterator[Row]:
    """Gain captured by every rule on the same candidates and the same device."""
    for per, target in ((10, ">= 0.87"), (5, ">= 0.80")):
        rules: dict[str, tuple[str, Callable[[Floats, Device], Result]]] = {
            "price stop": (target, with_price_stop),
            "keep if the mean is lower": ("-", partial(keep_if_lower, n=2 * (per // 2))),
            "three of three": ("-", three_of_three),
            "stored Welch": ("-", partial(stored_welch, n=2 * (per // 2))),
            "omniscient oracle": ("-", oracle),
        }
        for name, (goal, rule) in rules.items():
            results = [_campaign(rule, size, per, seed + i) for i in range(size.campaigns)]
            captured = sum(found.captured for found in results) / len(results)
            n_false = sum(found.n_false for found in results) / len(results)
            what = f"captured at {per} a candidate, {name}"
            yield what, goal, f"{captured:.2f} with {n_false:.2f} false accepts"


def _campaign(rule: Callable[[Floats, Device], Result], size: Size, per: int, seed: int) -> Result:
    effects = mix(np.random.default_rng([seed, 0]), size.candidates)
    noise, rng = MODELS["all together"], np.random.default_rng([seed, 1])
    return rule(effects, Device(noise, rng, per * size.candidates))


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute")
    size = QUICK if parser.parse_args(arguments).quick else FULL
    print(f"{'':56} {'target':>10}  reached")
    for rows in (
        null_rows(size, np.random.default_rng(1)),
        power_rows(size, np.random.default_rng(2)),
        stop_rows(size, np.random.default_rng(3)),
        campaign_rows(size, 4),
    ):
        for what, target, reached in rows:
            print(f"{what:56} {target:>10}  {reached}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
