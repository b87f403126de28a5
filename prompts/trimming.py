"""Keeps a prompt within its tokens: what is least useful is left out first, and named."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from events.projections.knowledge import BELIEF
from prompts.told import FactTold, LessonTold, Told

BYTES_PER_TOKEN = 2.5
"""UTF-8 bytes that a token stands for: rather too few, as `docs/prompts.md` shows."""

T = TypeVar("T")
Sort = Literal["fact", "lesson", "move"]


@dataclass(frozen=True)
class Shown:
    """The part of what a role may be told that its prompt has room for."""

    facts: tuple[FactTold, ...]
    lessons: tuple[LessonTold, ...]
    tried: tuple[str, ...]
    dropped: tuple[str, ...]
    """Names of the facts that are left out, and how many of the rest."""


class Part(NamedTuple):
    """Something that can be left out, by its place among what a role is told."""

    sort: Sort
    place: int


def n_tokens(text: str) -> int:
    """Tokens that ``text`` takes, rather too many than too few."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def trimmed(told: Told, write: Callable[[Shown], str], limit: int) -> tuple[str, Shown]:
    """Write a prompt with as much as there is room for.

    Args:
        told: what it may show.
        write: words it.
        limit: tokens. A prompt that is longer without all that can be left out stays so.
    """
    order = _least_useful_first(told)

    @cache
    def without(n: int) -> tuple[str, Shown]:
        shown = _without(told, order[:n])
        return write(shown), shown

    def fits(n: int) -> bool:
        return n_tokens(without(n)[0]) <= limit

    return without(0 if fits(0) else bisect_left(range(len(order)), True, key=fits))


def _least_useful_first(told: Told) -> list[Part]:
    """All that can be left out.

    Facts go by what is believed of them, legality rules first: screening applies those whether the
    author knows them or not. Then by use. What was measured outlasts the lessons, of which the
    oldest go first.
    """

    def worth(place: int) -> tuple[int, bool, int]:
        fact = told.facts[place]
        return -BELIEF.index(fact.state), not fact.is_rule, fact.uses

    moves = [Part("move", place) for place in range(len(told.tried))]
    lessons = [Part("lesson", place) for place in range(len(told.lessons))]
    facts = sorted(range(len(told.facts)), key=worth)
    lasting = [p for p in facts if told.facts[p].state == "confirmed" and not told.facts[p].is_rule]
    passing = [p for p in facts if p not in lasting]
    first, last = ([Part("fact", place) for place in places] for places in (passing, lasting))
    return [*moves, *first, *lessons, *last]


def _without(told: Told, left_out: Sequence[Part]) -> Shown:
    gone = frozenset(left_out)
    facts = tuple(f.name for i, f in enumerate(told.facts) if Part("fact", i) in gone)
    counts = Counter(part.sort for part in left_out)
    return Shown(
        facts=_kept("fact", told.facts, gone),
        lessons=_kept("lesson", told.lessons, gone),
        tried=_kept("move", told.tried, gone),
        dropped=(*facts, *(f"{n} {sort}s" for sort, n in counts.items() if sort != "fact")),
    )


def _kept(sort: Sort, told: Sequence[T], gone: Collection[Part]) -> tuple[T, ...]:
    return tuple(one for place, one in enumerate(told) if Part(sort, place) not in gone)
