"""Legality rules: from builds that failed alike to a predicate that tells them from others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from events.predicates import breaks, words
from events.vocabulary import Condition, Predicate
from knowledge.bench import Bench, Build
from knowledge.generalizing import Doubt, Generalization
from knowledge.shrinking import shrink

N_SHRINKING: Final = 60
N_EXPERIMENTS: Final = 60
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


def learn(
    signature: str,
    failures: Sequence[str],
    known_good: Sequence[str],
    build: Build,
    normalize: Callable[[str], str],
) -> Derivation:
    """Look for a predicate that refuses all ``failures`` and none of ``known_good``.

    Args:
        signature: of the failures.
        failures: sources that failed with it; the reproducer is of the first.
        known_good: sources that build, the baseline among them.
        build: builds a source of the kernel.
        normalize: the target's normal form of a source.
    """
    good = [words(normalize(source)) for source in known_good]
    conditions: list[Condition] = []
    experiments: list[Tried] = []
    reproducer = ""
    for failure in failures:
        if conditions and breaks(_any_of(conditions), words(normalize(failure))):
            continue
        bench = Bench(build, signature, N_SHRINKING)
        if len(conditions) == MAX_CONDITIONS or not bench.fails(failure):
            why = "does not fail alike again" if bench.fails(failure) is False else "differ"
            return Derivation(reproducer, None, why, ())
        small = shrink(failure, bench.fails)
        reproducer = reproducer or small
        bench.allow(N_EXPERIMENTS)
        failed = bench.failure(small)
        assert failed is not None, "it failed alike"
        found = Generalization(small, failed, good, bench).condition()
        if isinstance(found, Doubt):
            return Derivation(reproducer, None, found.why, ())
        conditions.append(found.condition)
        experiments += [Tried(source, is_refused) for source, is_refused in found.trials]
    predicate = _any_of(conditions)
    trials = (
        *(Tried(source, is_refused=True) for source in failures),
        *(Tried(source, is_refused=False) for source in known_good),
        *experiments,
    )
    wrong = sum(breaks(predicate, words(normalize(t.source))) != t.is_refused for t in trials)
    if wrong:
        return Derivation(reproducer, None, f"it is wrong on {wrong} of {len(trials)} trials", ())
    return Derivation(reproducer, predicate, "", trials)


def _any_of(conditions: Sequence[Condition]) -> Predicate:
    return Predicate(conditions=tuple(conditions))
