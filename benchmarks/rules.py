"""Rules that others decide by, on the effects of pairs or on stored runs, many tests at once."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from scipy.stats import ttest_ind_from_stats, wilcoxon

from benchmarks.noise import Floats
from events.campaign import Acceptance

NOMINAL = 0.05
"""What a test promises that is looked at more often than it allows for."""
MIN_PEEKED = 3
"""Pairs before the first look of a t-test."""


class Ended(NamedTuple):
    """How each of several tests went."""

    n_pairs: NDArray[np.int64]
    """That it took."""
    accepted: NDArray[np.bool_]


PairRule = Callable[[Floats], Ended]
"""Takes effects (tests, pairs) in the order measured; those that it may look at, or fewer."""
RunRule = Callable[[Floats, Floats], NDArray[np.bool_]]
"""Takes the runs of the candidates and those stored of the best, each (tests, runs)."""


def all_faster(effects: Floats, n: int) -> Ended:
    """Keep if ``n`` pairs in a row say faster; the first that does not ends it."""
    slower = effects[:, :n] >= 0
    width = slower.shape[1]
    ends = slower.any(axis=1)
    return Ended(np.where(ends, slower.argmax(axis=1) + 1, width), ~ends & (width == n))


def peeked_t(effects: Floats, n: int) -> Ended:
    """Keep as soon as a one-sided t-test says p < 0.05, looked at after every pair up to ``n``."""
    effects = effects[:, :n]
    counts = np.arange(1, effects.shape[1] + 1)
    means = np.cumsum(effects, axis=1) / counts
    squares = np.cumsum(effects**2, axis=1) / counts - means**2
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = means / np.sqrt(squares / (counts - 1))
        limits = student.ppf(NOMINAL, counts - 1)
    hits = (scores < limits) & (counts >= MIN_PEEKED)
    found = hits.any(axis=1)
    return Ended(np.where(found, hits.argmax(axis=1) + 1, len(counts)), found)


def fixed_wilcoxon(effects: Floats, n: int) -> Ended:
    """Keep if the signed-rank test on exactly ``n`` pairs says p < alpha, our own alpha."""
    effects = effects[:, :n]
    taken = np.full(len(effects), effects.shape[1])
    if effects.shape[1] < n:
        return Ended(taken, np.zeros(len(effects), dtype=bool))
    moved = np.where((effects == 0).all(axis=1, keepdims=True), 1.0, effects)  # it needs one
    found = wilcoxon(moved, alternative="less", axis=1, method="approx")
    return Ended(taken, np.asarray(found.pvalue < Acceptance().alpha, dtype=bool))


def lower_mean(runs: Floats, stored: Floats) -> NDArray[np.bool_]:
    """Keep if the mean is lower."""
    return np.asarray(runs.mean(axis=1) < stored.mean(axis=1), dtype=bool)


def welch(runs: Floats, stored: Floats) -> NDArray[np.bool_]:
    """Keep if Welch's one-sided test says p < 0.05."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = ttest_ind_from_stats(
            *(runs.mean(axis=1), runs.std(axis=1, ddof=1), runs.shape[1]),
            *(stored.mean(axis=1), stored.std(axis=1, ddof=1), stored.shape[1]),
            equal_var=False,
            alternative="less",
        )
    return np.asarray(found.pvalue < NOMINAL, dtype=bool)


PAIR_RULES: Mapping[str, tuple[int, PairRule]] = {
    "peeked t": (20, partial(peeked_t, n=20)),
    "3 of 3": (3, partial(all_faster, n=3)),
    "7 of 7": (7, partial(all_faster, n=7)),
    "fixed Wilcoxon": (16, partial(fixed_wilcoxon, n=16)),
}
"""With the most pairs that each looks at."""
RUN_RULES: Mapping[str, tuple[int, RunRule]] = {
    "stored Welch": (7, welch),
    "lower mean of 7": (7, lower_mean),
}
"""With the runs of each version."""
