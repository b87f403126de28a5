"""Predicates of legality rules: whether a source, in its target's normal form, breaks a rule."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from events.vocabulary import Comparison, Condition, Predicate

WORD: Final = "<word>"
NUMBER: Final = "<number>"
LIMITED: Final = "<n>"
"""Placeholders of a pattern: any word, any number, and the number that is compared."""
PLACEHOLDERS: Final = frozenset((WORD, NUMBER, LIMITED))
_TOKEN: Final = re.compile(r"\d\w*(?:\.\d+)?(?:(?<=[eE])[+-]\d+)?|[^\W\d]\w*|\S")
_COMPARED: Final[Mapping[Comparison, Callable[[float, float], bool]]] = {
    "above": lambda n, limit: n > limit,
    "below": lambda n, limit: n < limit,
    "other_than": lambda n, limit: n != limit,
    "no_multiple_of": lambda n, limit: bool(limit) and n % limit != 0,
    "no_divisor_of": lambda n, limit: not n or limit % n != 0,
    "no_power_of_two": lambda n, _: n < 1 or n != int(n) or int(n).bit_count() != 1,
}


class Token(NamedTuple):
    """A word, a number or a sign of a source."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset of what follows."""
        return self.start + len(self.text)

    @property
    def is_word(self) -> bool:
        """Whether it is a name or a keyword."""
        return self.text[0].isalpha() or self.text[0] == "_"


def tokens(text: str) -> tuple[Token, ...]:
    """Cut any language into words, numbers and single signs; blanks separate and are dropped."""
    return tuple(Token(found[0], found.start()) for found in _TOKEN.finditer(text))


def words(text: str) -> tuple[str, ...]:
    """The texts of `tokens`."""
    return tuple(_TOKEN.findall(text))


def number(text: str) -> float | None:
    """The value of a token, None if it is no plain decimal number."""
    return float(text) if re.fullmatch(r"\d{1,18}(?:\.\d{1,18})?", text, re.ASCII) else None


def breaks(predicate: Predicate, text: Sequence[str]) -> bool:
    """Whether a source meets one of the conditions.

    Args:
        predicate: of a rule.
        text: the `words` of a source in the target's normal form.
    """
    return any(any(True for _ in occurrences(c, text)) for c in predicate.conditions)


def occurrences(condition: Condition, text: Sequence[str]) -> Iterator[int]:
    """Places in ``text``, counted in tokens, where a condition is met."""
    pattern, n = condition.tokens, len(condition.tokens)
    anchor = next((i for i, part in enumerate(pattern) if part not in PLACEHOLDERS), 0)
    for at in range(len(text) - n + 1):
        if _fits(pattern[anchor], text[at + anchor], condition) and all(
            _fits(part, text[at + i], condition) for i, part in enumerate(pattern)
        ):
            yield at


def _fits(part: str, token: str, condition: Condition) -> bool:
    if part == WORD:
        return Token(token, 0).is_word
    value = number(token)
    if part == NUMBER:
        return value is not None
    if part == LIMITED and condition.comparison is not None:
        return value is not None and is_beyond(condition.comparison, value, condition.limit)
    return part == token


def is_beyond(comparison: Comparison, value: float, limit: float) -> bool:
    """Whether a number is one that a comparison refuses."""
    return _COMPARED[comparison](value, limit)


def spelled(predicate: Predicate) -> str:
    """A predicate as people read it: ``buffers <n> with <n> above 8``."""
    return " or ".join(map(_spelled, predicate.conditions))


def _spelled(condition: Condition) -> str:
    text = f"`{' '.join(condition.tokens)}`"
    if condition.comparison is None:
        return text
    limit = "" if condition.comparison == "no_power_of_two" else f" {condition.limit:g}"
    return f"{text} with {LIMITED} {condition.comparison.replace('_', ' ')}{limit}"
