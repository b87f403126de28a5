"""The limit of a number that a source may hold: read from a diagnostic, then tried out."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, NamedTuple

from events.diagnostics import first_error
from events.predicates import is_beyond
from events.vocabulary import Comparison

MAX_LIMITS: Final = 6
"""Numbers of a diagnostic that are tried."""
_PLACE: Final = re.compile(r"^\S*?:\d+(?::\d+)?:")
"""File, line and column."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d{1,9}(?![\w.]*\w)")
_WIDEST_FIRST: Final[tuple[Comparison, ...]] = (
    "other_than", "no_divisor_of", "above", "below", "no_multiple_of",
)  # fmt: skip


class Limit(NamedTuple):
    """Which numbers are refused."""

    comparison: Comparison
    limit: int
    trials: tuple[tuple[int, bool], ...]
    """Numbers that were tried, and whether each is refused, as the comparison says."""


def error_line(diagnostics: str) -> str:
    """The first line that says what is wrong, without places."""
    return _PLACE.sub("", first_error(diagnostics))


def find_limit(value: int, message: str, is_refused: Callable[[int], bool | None]) -> Limit | None:
    """Find the comparison that holds for a refused number and for those around its limit.

    Args:
        value: that is refused.
        message: why, as a compiler says it: it names the limit.
        is_refused: tries another number in its place; None if nothing more may be tried.

    Returns:
        The widest comparison that every trial agrees with, or None.
    """
    named = tuple(dict.fromkeys(int(n) for n in _NUMBER.findall(message)))[:MAX_LIMITS]
    for comparison, limit in _guesses(value, named, message):
        tried: list[tuple[int, bool]] = []
        for n in dict.fromkeys((*_edges(comparison, limit, value), *named)):
            says = is_beyond(comparison, n, limit)
            if n != value and is_refused(n) is not says:
                break
            tried.append((n, says))
        else:
            return Limit(comparison, limit, tuple(tried))
    return None


def _guesses(value: int, named: tuple[int, ...], message: str) -> Iterator[tuple[Comparison, int]]:
    if "power of two" in message and is_beyond("no_power_of_two", value, 0):
        yield "no_power_of_two", 0
    for limit in named:
        if limit in (0, value):
            continue
        for comparison in _WIDEST_FIRST:
            if is_beyond(comparison, value, limit):
                yield comparison, limit


def _edges(comparison: Comparison, limit: int, value: int) -> tuple[int, ...]:
    """Numbers next to where a comparison changes its mind, allowed ones first."""
    match comparison:
        case "above":
            return (limit, limit // 2, limit + 1, 2 * limit)
        case "below":
            return (limit, 2 * limit, max(0, limit - 1), limit // 2)
        case "other_than":
            return (limit, limit // 2, 2 * limit, max(0, limit - 1), limit + 1)
        case "no_multiple_of":
            return (limit, 2 * limit, limit + 1)
        case "no_divisor_of":
            small, large = (next(n for n in count(k) if limit % n) for k in (2, value + 1))
            return (limit, small, 2 * limit, large)
        case "no_power_of_two":
            below = 1 << max(1, value.bit_length() - 1)
            return (below, 2 * below, 3 * below)
