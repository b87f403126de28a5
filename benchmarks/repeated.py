"""One test, repeated: how often it accepts, after how many pairs, and how its interval holds."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise import RUN_SD, Floats, Noise, Rng, Shape, aa_scale, pairs_of
from benchmarks.rules import PairRule, RunRule
from decisions.acceptance import judge
from decisions.capital import CLIP, RATES, SHARES, Scale, capital
from events.campaign import Acceptance

POLICY = Acceptance()
PAIR_SD = RUN_SD * math.sqrt(2)
BATCH = 2000
"""Tests held in memory at a time."""
HOUR = 180
"""Pairs of an hour, ten seconds a run."""


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
    for start in range(0, n, BATCH):
        effects, scale_ = null_effects(noise, rng, (min(BATCH, n - start), n_pairs))
        accepted += int((stopping_pairs(effects, scale_, POLICY.alpha) > 0).sum())
    return accepted / n


def paired_false_accepts(noise: Noise, rng: Rng, shape: Shape, rule: PairRule) -> float:
    """Share of equal candidates that a rule on pairs, in the order of fair coins, accepts."""
    effects, _ = null_effects(noise, rng, shape)
    return float(rule(effects).accepted.mean())


def stored_false_accepts(noise: Noise, rng: Rng, shape: Shape, rule: RunRule) -> float:
    """Share of equal candidates that a rule accepts on runs stored an hour before."""
    n_tests, n_runs = shape
    n_accepted = 0
    for start in range(0, n_tests, BATCH):
        size = min(BATCH, n_tests - start)
        runs = noise.read(noise.slots(rng, (size, HOUR))).reshape(size, 2 * HOUR)
        n_accepted += int(rule(runs[:, -n_runs:], runs[:, :n_runs]).sum())
    return n_accepted / n_tests


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
