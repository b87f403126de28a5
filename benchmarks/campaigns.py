"""Whole campaigns: the acceptance test and other rules on the same candidates and device."""

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.noise import Floats, Noise, Rng, aa_scale, pairs_of
from benchmarks.rules import PairRule, RunRule
from decisions.acceptance import judge
from decisions.capital import effect_of
from decisions.price import Price, allowance, next_price, reopened
from events.campaign import Acceptance
from events.vocabulary import Pair

POLICY = Acceptance()


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

    def effects(self, effect: float, n: int) -> Floats:
        """What the next ``n`` pairs, or those that are left, will say; (1, pairs), log-percent."""
        slots = self._times[self._at : self._at + n]
        pairs = pairs_of(self.noise, slots, effect, self.rng)
        return np.array([[effect_of(pair, self.measured.slot) for pair in pairs]])

    def spend(self, n: int) -> None:
        """Take ``n`` pairs."""
        self._at += n

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


def paired(effects: Floats, device: Device, rule: PairRule, n: int) -> Result:
    """Decide every candidate by a rule on up to ``n`` pairs, until the device time is gone."""
    accepted = []
    for candidate, effect in enumerate(effects):
        ended = rule(device.effects(effect, n))
        device.spend(int(ended.n_pairs[0]))
        if ended.accepted[0]:
            accepted.append(candidate)
        if not device.left:
            break
    return result(effects, accepted)


def stored(effects: Floats, device: Device, rule: RunRule, n: int) -> Result:
    """Decide every candidate by a rule on ``n`` (even) runs against those stored for the best."""
    best, level, accepted = device.runs(0.0, n), 0.0, []
    for candidate, effect in enumerate(effects):
        if device.left < n:
            break
        runs = device.runs(level + effect, n)
        if rule(runs[None], best[None])[0]:
            best, level = runs, level + effect
            accepted.append(candidate)
    return result(effects, accepted)


def oracle(effects: Floats, device: Device) -> Result:
    """Know every effect: test the gains alone, largest first, until the device time is gone."""
    accepted = []
    for candidate in np.argsort(effects)[: int((effects < 0).sum())].tolist():
        if _go_on(effects[candidate], device, [], Price(0.0))[0] == "accept":
            accepted.append(candidate)
    return result(effects, accepted)
