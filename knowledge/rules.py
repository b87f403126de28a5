"""Legality rules: from builds that failed alike to a predicate that tells them from others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from events.predicates import PLACEHOLDERS, breaks, words
from events.vocabulary import Predicate
from knowledge.bench import Bench, Build
from knowledge.generalizing import Doubt, Found, Generalization
from knowledge.shrinking import shrink

N_SHRINKING: Final = 8
N_EXPERIMENTS: Final = 24
"""Builds for one failure: to find its reproducer, and to find out what of it matters."""
MAX_CONDITIONS: Final = 3
"""Of one predicate: failures that nothing else has in common than their signature."""


@dataclass(frozen=True)
class Tried:
    """A source, and whether it is refused with the signature that is learned from."""

    source: str
    is_refused: bool


@dataclass(frozen=True)
class Derivation:
    """What a failed build teaches: a predicate, or why there is none."""

    reproducer: str
    """The smallest source found that fails alike; "" if it does not fail again."""
    predicate: Predicate | None
    doubt: str
    """Why no source is refused on it; "" with a predicate."""
    trials: tuple[Tried, ...]
    """What the predicate was held against, and says the same of."""
    is_general: bool
    """Whether it is about words that every kernel has, so that it holds for each of them."""
    n_builds: int


@dataclass(frozen=True)
class Failing:
    """What is learned from.

    Args:
        signature: of the failures.
        failures: sources that failed with it; the reproducer is of the first.
        known_good: sources that build, the baseline among them.
        elsewhere: baselines of other kernels.
        likely: predicates that were learned from the signature for other kernels.
    """

    signature: str
    failures: Sequence[str]
    known_good: Sequence[str]
    elsewhere: Sequence[str] = ()
    likely: Sequence[Predicate] = ()


def learn(failing: Failing, build: Build, normalize: Callable[[str], str]) -> Derivation:
    """Look for a predicate that refuses all failures and no source known to build.

    Args:
        failing: what failed, and what did not.
        build: builds a source of the kernel.
        normalize: the target's normal form of a source.
    """
    return _Learning(failing, build, normalize).derivation()


class _Learning:
    def __init__(self, failing: Failing, build: Build, normalize: Callable[[str], str]) -> None:
        self._failing, self._build, self._normalize = failing, build, normalize
        self._good = [self._words(source) for source in failing.known_good]
        self._found: list[Found] = []
        self._reproducer, self._n_builds = "", 0

    def derivation(self) -> Derivation:
        """Find conditions until each failure meets one, then hold them against all sources."""
        for failure in self._failing.failures:
            if self._found and breaks(self._predicate(), self._words(failure)):
                continue
            found = self._condition(failure)
            if isinstance(found, Doubt):
                return self._doubtful(found.why)
            self._found.append(found)
        trials = (
            *(Tried(source, is_refused=True) for source in self._failing.failures),
            *(Tried(source, is_refused=False) for source in self._failing.known_good),
            *(Tried(*trial) for found in self._found for trial in found.trials),
        )
        predicate = self._predicate()
        wrong = sum(breaks(predicate, self._words(t.source)) != t.is_refused for t in trials)
        if wrong:
            return self._doubtful(f"it is wrong on {wrong} of {len(trials)} trials")
        general = self._is_general(predicate)
        return Derivation(self._reproducer, predicate, "", trials, general, self._n_builds)

    def _condition(self, failure: str) -> Found | Doubt:
        if len(self._found) == MAX_CONDITIONS:
            return Doubt("the failures have nothing else in common")
        if known := self._known(failure):
            self._reproducer = self._reproducer or failure
            return known
        bench = Bench(self._build, self._failing.signature, N_SHRINKING)
        whole = bench.failure(failure) if bench.fails(failure) else None
        small = shrink(failure, whole.snippet, bench.fails) if whole else ""
        self._reproducer = self._reproducer or small
        bench.allow(N_EXPERIMENTS)
        failed = bench.failure(small) if small else None
        found = (
            Generalization(small, failed, self._good, bench).condition()
            if failed
            else Doubt("it does not fail alike again")
        )
        self._n_builds += bench.n_built
        return found

    def _known(self, failure: str) -> Found | None:
        """What another kernel has taught, if it tells the failure from what builds."""
        bad = self._words(failure)
        for condition in (c for predicate in self._failing.likely for c in predicate.conditions):
            alone = Predicate(conditions=(condition,))
            if breaks(alone, bad) and not any(breaks(alone, good) for good in self._good):
                return Found(condition, (), is_own=True)
        return None

    def _is_general(self, predicate: Predicate) -> bool:
        """Whether all its words are keywords: every other kernel has them, and breaks nothing."""
        others = [words(source) for source in self._failing.elsewhere]
        literal = {part for found in self._found for part in found.condition.tokens} - PLACEHOLDERS
        return (
            bool(others)
            and not any(found.is_own for found in self._found)
            and all(literal <= {*text} for text in others)
            and not any(breaks(predicate, self._words(s)) for s in self._failing.elsewhere)
        )

    def _doubtful(self, why: str) -> Derivation:
        return Derivation(self._reproducer, None, why, (), False, self._n_builds)

    def _predicate(self) -> Predicate:
        return Predicate(conditions=tuple(found.condition for found in self._found))

    def _words(self, source: str) -> tuple[str, ...]:
        return words(self._normalize(source))
