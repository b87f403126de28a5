"""What the acceptance test reaches, simulated with fixed seeds, beside what it must reach.

Run ``python -m benchmarks.acceptance --quick`` (half a minute) or without ``--quick`` (minutes).
Times are logarithms in per cent; a measurement is one run of one arm.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import ttest_ind_from_stats

from decisions.acceptance import judge
from decisions.capital import CLIP, RATES, SHARES, Scale, capital, scale
from decisions.price import Price, allowance, next_price, reopened
from events.campaign import Acceptance
from events.vocabulary import Pair

Floats = NDArray[np.floating]
Rng = np.random.Generator
Shape = tuple[int, int]
POLICY = Acceptance()
RUN_SD = 0.5
PAIR_SD = RUN_SD * math.sqrt(2)
MIN_BOUNDED = 7
"""Pairs before which an interval has no ends, so that its cover says nothing."""


# ---- noise: each part is (repetitions, pairs) -> (repetitions, pairs, 2), log-percent per slot --


def gaussian(rng: Rng, shape: Shape) -> Floats:
    """Independent runs."""
    return rng.normal(0, RUN_SD, (*shape, 2))


def heavy(rng: Rng, shape: Shape) -> Floats:
    """Student-t with three degrees of freedom."""
    return RUN_SD / math.sqrt(3) * rng.standard_t(3, (*shape, 2))


def spikes(rng: Rng, shape: Shape) -> Floats:
    """One run in a hundred is 20 % slower."""
    return 20.0 * (rng.random((*shape, 2)) < 0.01)


def drift(rng: Rng, shape: Shape) -> Floats:
    """AR(1) of standard deviation 2 % and an hour's memory, ten seconds a run."""
    memory = math.exp(-1 / 360)
    shocks = rng.normal(0, 2 * math.sqrt(1 - memory**2), (shape[0], 2 * shape[1]))
    shocks[:, 0] = rng.normal(0, 2, shape[0])
    slow: Floats = lfilter([1.0], [1.0, -memory], shocks, axis=1)
    return slow.reshape(*shape, 2)


def walk(rng: Rng, shape: Shape) -> Floats:
    """Random walk of 0.02 % a run."""
    steps = rng.normal(0, 0.02, (shape[0], 2 * shape[1]))
    return np.cumsum(steps, axis=1).reshape(*shape, 2)


def states(rng: Rng, shape: Shape) -> Floats:
    """A neighbour flips the clock between two states, 8 % apart, once in 50 runs."""
    flips = rng.random((shape[0], 2 * shape[1])) < 0.02
    return 8.0 * (np.cumsum(flips, axis=1) % 2).reshape(*shape, 2)


def slot(rng: Rng, shape: Shape) -> Floats:
    """The first slot is 0.3 % slower."""
    return np.broadcast_to(np.array([0.3, 0.0]), (*shape, 2))


def cold(rng: Rng, shape: Shape) -> Floats:
    """The first run of every three-pair job is 1 % slower."""
    late = np.zeros((*shape, 2))
    late[:, ::3, 0] = 1.0
    return late


@dataclass(frozen=True)
class Noise:
    """A device: parts that add up, read on a clock with steps of ``tick`` log-percent."""

    parts: tuple[Callable[[Rng, Shape], Floats], ...]
    tick: float = 0.0

    def slots(self, rng: Rng, shape: Shape) -> Floats:
        """Unread times of both slots of every pair, (repetitions, pairs, 2), log-percent."""
        total: Floats = np.sum([part(rng, shape) for part in self.parts], axis=0)
        return total

    def read(self, times: Floats) -> Floats:
        """What the clock shows."""
        return self.tick * np.round(times / self.tick) if self.tick else times


MODELS = {
    "Gaussian": Noise((gaussian,)),
    "t3": Noise((heavy,)),
    "spikes": Noise((gaussian, spikes)),
    "hour drift": Noise((gaussian, drift)),
    "random walk": Noise((gaussian, walk)),
    "two clock states": Noise((gaussian, states)),
    "position": Noise((gaussian, slot)),
    "coarse grid": Noise((gaussian,), tick=1.0),
    "cold starts": Noise((gaussian, cold)),
    "all together": Noise((heavy, spikes, drift, walk, states, slot, cold), tick=0.1),
}


def pairs_of(noise: Noise, slots: Floats, effect: float, rng: Rng) -> list[Pair]:
    """Run a candidate of a true ``effect`` in slots of (pairs, 2), in the order of fair coins."""
    coins = rng.random(len(slots)) < 0.5
    order = np.where(coins[:, None], [1, 0], [0, 1])
    arms = np.take_along_axis(slots, order, axis=1) + np.array([0.0, effect])
    return [
        Pair(candidate_first=first, incumbent_s=incumbent, candidate_s=candidate, probe_s=0.0)
        for first, (incumbent, candidate) in zip(
            coins.tolist(), np.exp(noise.read(arms) / 100).tolist(), strict=True
        )
    ]


def aa_scale(noise: Noise, rng: Rng) -> Scale:
    """The scale that 200 A/A pairs of this device give."""
    return scale(pairs_of(noise, noise.slots(rng, (1, 200))[0], 0.0, rng))


# ---- many tests at once ----------------------------------------------------------------------


def stopping_pairs(effects: Floats, scale_: float, alpha: float) -> NDArray[np.int64]:
    """Per repetition, the number of pairs after which the capital is at 1/alpha; 0 if never.

    The same bets as ``decisions.capital.capital`` on (repetitions, pairs) effects at once.
    """
    n, limit = len(effects), 1 / alpha
    held, shares = np.ones(n), np.tile(np.array(SHARES), (n, 1))
    stopped = np.zeros(n, dtype=np.int64)
    for count, effect in enumerate(effects.T, start=1):
        size = np.minimum(np.abs(effect) / scale_, CLIP)
        stakes = np.tanh(size[:, None] * np.array(RATES))
        stake = np.minimum((shares * stakes).sum(axis=1), limit / held - 1)
        held = held * (1 - np.sign(effect) * stake)
        shares = shares * (1 - np.sign(effect)[:, None] * stakes)
        shares /= shares.sum(axis=1, keepdims=True)
        stopped[(stopped == 0) & (held >= limit * (1 - 1e-12))] = count
    return stopped


def cross_check(effects: Floats, scale_: float, alpha: float) -> int:
    """Number of repetitions where the vector form and ``capital`` disagree on the stop."""
    fast = stopping_pairs(effects, scale_, alpha)
    slow = [
        next((i for i, held in enumerate(capital(row, scale_, alpha), 1) if held >= 1 / alpha), 0)
        for row in effects.tolist()
    ]
    return int((fast != np.array(slow)).sum())


def null_effects(noise: Noise, rng: Rng, shape: Shape) -> tuple[Floats, float]:
    """Effects of a candidate that equals the incumbent, slot effect taken off, and their scale."""
    measured = aa_scale(noise, rng)
    times = noise.read(noise.slots(rng, shape))
    difference = times[..., 0] - times[..., 1] - measured.slot
    return np.where(rng.random(shape) < 0.5, difference, -difference), measured.pair


def false_accepts(noise: Noise, rng: Rng, n: int, n_pairs: int) -> float:
    """Share of ``n`` equal candidates accepted within ``n_pairs``, looked at after every pair."""
    accepted = 0
    for start in range(0, n, 2000):
        effects, scale_ = null_effects(noise, rng, (min(2000, n - start), n_pairs))
        accepted += int((stopping_pairs(effects, scale_, POLICY.alpha) > 0).sum())
    return accepted / n


def pairs_to_accept(rng: Rng, effect: float, n: int, n_pairs: int) -> float:
    """Mean pairs until a gain is accepted, Gaussian noise of pair sd 0.71 %."""
    effects = rng.normal(effect, PAIR_SD, (n, n_pairs))
    stops = stopping_pairs(effects, PAIR_SD, POLICY.alpha)
    if (stops == 0).any():
        raise ValueError(f"{(stops == 0).sum()} tests at {effect} need over {n_pairs} pairs")
    return float(stops.mean())


def limit_pairs(effect: float) -> float:
    """ln(1/alpha) / KL: what no test of power one can beat, for Gaussian pairs of known sd."""
    return math.log(1 / POLICY.alpha) / (effect**2 / (2 * PAIR_SD**2))


# ---- one candidate through the production code -----------------------------------------------


class Stop(NamedTuple):
    """How one candidate ended."""

    n_pairs: int
    covered: bool
    """The confidence sequence at the stop holds the true effect."""


def until_stop(noise: Noise, rng: Rng, effect: float, price: float, measured: Scale) -> Stop:
    """Measure a candidate pair by pair until ``judge`` says something else than go on."""
    n = POLICY.max_pairs
    pairs = pairs_of(noise, noise.slots(rng, (1, n))[0], effect, rng)
    for count in range(1, n + 1):
        verdict = judge(pairs[:count], measured, POLICY, price)
        if verdict.low is not None and verdict.high is not None:
            return Stop(count, verdict.low <= effect <= verdict.high)
    raise ValueError(f"judge went on after {n} pairs, against policy.max_pairs")


def stops(noise: Noise, rng: Rng, effect: float, price: float, n: int) -> list[Stop]:
    """``n`` candidates of the same true effect."""
    measured = aa_scale(noise, rng)
    return [until_stop(noise, rng, effect, price, measured) for _ in range(n)]


# ---- campaigns -------------------------------------------------------------------------------


def mix(rng: Rng, n: int) -> Floats:
    """True effects of a campaign's candidates, log-percent.

    70 % worse by 0.1-10 %, 20 % within 0.1 %, 8 % gains of 0.2-1 %, 2 % gains of 1-8 %; sizes
    are log-uniform within their range, which is this benchmark's own choice.
    """

    def between(low: float, high: float) -> Floats:
        return np.exp(rng.uniform(math.log(low), math.log(high), n))

    part = rng.random(n)
    return np.select(
        [part < 0.7, part < 0.9, part < 0.98],
        [between(0.1, 10), rng.uniform(-0.1, 0.1, n), -between(0.2, 1)],
        -between(1, 8),
    )


@dataclass
class Device:
    """A device with a fixed number of measurements, in the order they are taken."""

    noise: Noise
    rng: Rng
    n_runs: int

    def __post_init__(self) -> None:
        self.measured = aa_scale(self.noise, self.rng)
        self._times = self.noise.slots(self.rng, (1, self.n_runs // 2))[0]
        self._at = 0

    @property
    def left(self) -> int:
        """Runs that are left; pairs take two."""
        return 2 * (len(self._times) - self._at)

    def pair(self, effect: float) -> Pair:
        """Measure one pair in the order of a fair coin."""
        slots = self._times[self._at : self._at + 1]
        self._at += 1
        return pairs_of(self.noise, slots, effect, self.rng)[0]

    def runs(self, effect: float, n: int) -> Floats:
        """Measure ``n`` (even) runs of one version without an incumbent beside it."""
        times = self._times[self._at : self._at + n // 2]
        self._at += n // 2
        return self.noise.read(times.ravel() + effect)


@dataclass(frozen=True)
class Result:
    """What a campaign took, net of what false accepts lost, over all there was to take."""

    captured: float
    n_false: int


def result(effects: Floats, accepted: list[int]) -> Result:
    """Sum up a campaign by its true effects."""
    available = -effects[effects < 0].sum()
    return Result(
        captured=-float(effects[accepted].sum()) / available,
        n_false=int((effects[accepted] >= 0).sum()),
    )


def with_price_stop(effects: Floats, device: Device) -> Result:
    """The acceptance test as it runs: judge after each pair, park below the price, reopen."""
    price, accepted = Price(POLICY.start_price), []
    parked: dict[int, tuple[list[Pair], float]] = {}
    for candidate in range(len(effects)):
        before = device.left
        outcome, pairs, worth = _go_on(effects[candidate], device, [], price)
        if outcome == "accept":
            accepted.append(candidate)
        if outcome == "park":
            parked[candidate] = (pairs, worth)
        share = allowance(before, len(effects) - candidate)
        price = next_price(price, before - device.left, share)
    while device.left and (choice := reopened({c: worth for c, (_, worth) in parked.items()})):
        candidate, price = choice
        outcome, pairs, worth = _go_on(effects[candidate], device, parked.pop(candidate)[0], price)
        if outcome == "accept":
            accepted.append(candidate)
        if outcome == "park" and len(pairs) < POLICY.max_pairs:
            parked[candidate] = (pairs, worth)
    return result(effects, accepted)


def _go_on(
    effect: float, device: Device, pairs: list[Pair], price: Price
) -> tuple[str, list[Pair], float]:
    pairs, outcome, worth = list(pairs), "continue", 0.0
    while outcome == "continue" and device.left:
        pairs.append(device.pair(effect))
        verdict = judge(pairs, device.measured, POLICY, price.value)
        outcome, worth = verdict.outcome, verdict.index
    return outcome, pairs, worth


def keep_if_lower(effects: Floats, device: Device, n: int) -> Result:
    """Keep the lower mean of ``n`` runs, against the score stored for the best so far."""
    best, level, accepted = device.runs(0.0, n).mean(), 0.0, []
    for candidate, effect in enumerate(effects):
        score = device.runs(level + effect, n).mean() if device.left >= n else math.inf
        if score < best:
            best, level = score, level + effect
            accepted.append(candidate)
    return result(effects, accepted)


def welch(runs: Floats, best: Floats) -> float:
    """One-sided p-value of Welch's test; 1 if the clock shows the same for all of them."""
    spread = float(runs.var(ddof=1) + best.var(ddof=1))
    if spread == 0:
        return 1.0
    found = ttest_ind_from_stats(
        *(runs.mean(), runs.std(ddof=1), len(runs)),
        *(best.mean(), best.std(ddof=1), len(best)),
        equal_var=False,
        alternative="less",
    )
    return float(found.pvalue)


def stored_welch(effects: Floats, device: Device, n: int) -> Result:
    """Keep if Welch's test on ``n`` runs says p < 0.05 against the runs stored for the best."""
    best, level, accepted = device.runs(0.0, n), 0.0, []
    for candidate, effect in enumerate(effects):
        if device.left < n:
            break
        runs = device.runs(level + effect, n)
        if welch(runs, best) < 0.05:
            best, level = runs, level + effect
            accepted.append(candidate)
    return result(effects, accepted)


def three_of_three(effects: Floats, device: Device) -> Result:
    """Keep if three pairs in a row say faster; the first slower one ends it."""
    accepted = []
    for candidate, effect in enumerate(effects):
        for count in range(1, 4):
            pair = device.pair(effect) if device.left else None
            if pair is None or pair.candidate_s >= pair.incumbent_s:
                break
            if count == 3:
                accepted.append(candidate)
    return result(effects, accepted)


def oracle(effects: Floats, device: Device) -> Result:
    """Know every effect: test the gains alone, largest first, until the device time is gone."""
    accepted = []
    for candidate in np.argsort(effects)[: int((effects < 0).sum())].tolist():
        if _go_on(effects[candidate], device, [], Price(0.0))[0] == "accept":
            accepted.append(candidate)
    return result(effects, accepted)


# ---- the table -------------------------------------------------------------------------------


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
