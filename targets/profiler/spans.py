"""Stretches of time: unions and intersections of begin and end, in cycles."""

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the same time as disjoint stretches, in order; empty ones are left out."""
    merged: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def length(spans: Iterable[Span]) -> int:
    """Return the cycles of disjoint stretches."""
    return sum(end - begin for begin, end in spans)


def common(one: Sequence[Span], other: Sequence[Span]) -> int:
    """Return the cycles in which both go on; each is a `union`."""
    total = i = j = 0
    while i < len(one) and j < len(other):
        total += max(0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total
