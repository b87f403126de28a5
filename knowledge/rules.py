"""Legality rules derived from failed builds. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from events.vocabulary import FactLearned

MIN_SNIPPET = 4
"""Shorter texts (a brace, an operator) say nothing about what the toolchain refuses."""


@dataclass(frozen=True)
class Derivation:
    """What a failed build teaches: a predicate, or why there is none."""

    snippet: str
    """"" if the failure is only worth a claim."""
    doubt: str
    """Why no source is refused on it; "" with a snippet."""


def learn(snippet: str, source: str, known_good: Sequence[str], *, certain: bool) -> Derivation:
    """Decide whether a failed build gives a rule.

    Args:
        snippet: smallest offending text that the target knows, in its normal form.
        source: normalized source that failed.
        known_good: normalized sources that built, the baseline among them; a rule never refuses
            any of them.
        certain: whether the target says that the text alone is illegal. A line that a compiler
            stumbles over may be innocent: what is wrong may stand before it.

    Returns:
        The snippet to refuse from now on, or the doubt that forbids it.
    """
    text = snippet.strip()
    if len(text) < MIN_SNIPPET or not any(c.isalnum() for c in text):
        return Derivation("", "no offending text that would mean anything elsewhere")
    if not occurs(text, source):
        return Derivation("", "the offending text is not in the source as written")
    if any(text in good for good in known_good):
        return Derivation("", "the same text is in a source that builds")
    if not certain:
        return Derivation("", "it may be legal elsewhere")
    return Derivation(text, "")


def violated(rules: Mapping[int, FactLearned], normalized_source: str) -> int | None:
    """Return the number of the first of ``rules`` that a normalized source breaks."""
    return next((n for n, rule in rules.items() if occurs(rule.snippet, normalized_source)), None)


def occurs(snippet: str, source: str) -> bool:
    """Whether ``source`` contains ``snippet`` as whole words: ``dot`` is not in ``dot4``."""
    if not snippet or snippet not in source:
        return False
    before = r"\b" if re.match(r"\w", snippet) else ""
    after = r"\b" if re.search(r"\w\Z", snippet) else ""
    return re.search(before + re.escape(snippet) + after, source) is not None
