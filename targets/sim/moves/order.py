"""Moves of statements: what is begun first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sim.npu.syntax import (
    AxisDecl,
    HbmDecl,
    KernelText,
    LoadText,
    LoopText,
    PassText,
    PlaceDecl,
    StatementText,
)
from targets.sim.moves.change import Change, label
from targets.sim.moves.tree import independent, reads, statements, walk, with_body, writes


def order(kernel: KernelText) -> Iterator[Change]:
    """Move one statement to before another, and what it needs along with it."""
    bodies = [kernel.items, *(s.body for _, s in walk(kernel.items) if isinstance(s, LoopText))]
    paths = [(0,), *((*p, 0) for p, s in walk(kernel.items) if isinstance(s, LoopText))]
    for path, body in zip(paths, bodies, strict=True):
        first = sum(isinstance(s, AxisDecl | HbmDecl | PlaceDecl) for s in body)
        mine = statements(body)
        for k, s in enumerate(mine):
            for to in _places(mine, k):
                new = moved(mine, k, to)
                if new is None or new == mine:
                    continue
                where = f"before {label(mine[to])}" if to < len(mine) else "to the end"
                why = "engines begin it " + ("sooner" if to < k else "when others are served")
                new_body = (*body[:first], *new)
                what = f"{label(s)} {where}"
                yield Change(what, why, partial(with_body, kernel, path, new_body))


def _places(statements: Sequence[StatementText], k: int) -> Iterator[int]:
    """Yield where a statement may be worth to stand: near loads, loops, neighbours and ends."""
    anchors = {0, k - 1, k + 2, len(statements)}
    anchors |= {i for i, s in enumerate(statements) if not isinstance(s, PassText)}
    yield from sorted(i for i in anchors if 0 <= i <= len(statements) and i not in (k, k + 1))


def moved(
    statements: tuple[StatementText, ...], k: int, to: int
) -> tuple[StatementText, ...] | None:
    """Move statement ``k`` to before statement ``to``; None if its meaning would change.

    Forward, what needs it moves with it; backward, what it needs does.
    """
    if to < k:
        moving = _chain(statements[to : k + 1])
        if len(moving) > 4:
            return None
        staying = [s for s in statements[to : k + 1] if not any(s is m for m in moving)]
        new = (*statements[:to], *moving, *staying, *statements[k + 1 :])
    else:
        between = statements[k + 1 : to]
        moving = [statements[k]]
        for s in between:
            if not all(independent(m, s) for m in moving):
                moving.append(s)
        if len(moving) > 4:
            return None
        staying = [s for s in between if not any(s is m for m in moving)]
        new = (*statements[:k], *staying, *moving, *statements[to:])
    return new if _kept(statements, new) else None


def _chain(statements: Sequence[StatementText]) -> list[StatementText]:
    """Return the last statement and those before it that it needs, in order."""
    found = [statements[-1]]
    names = {*reads(statements[-1])}
    for s in reversed(statements[:-1]):
        if names & {*writes(s)}:
            found.insert(0, s)
            names |= {*reads(s)}
    return found


def _kept(before: Sequence[StatementText], after: Sequence[StatementText]) -> bool:
    """Tell whether all that depend on each other stand in the same order as before."""
    place = {id(s): i for i, s in enumerate(after)}
    return all(
        place[id(a)] < place[id(b)] or independent(a, b)
        for i, a in enumerate(before)
        for b in before[i + 1 :]
        if place[id(a)] > place[id(b)]
    )


def sort_loads(kernel: KernelText) -> Iterator[Change]:
    """Let a load go first of all loads, or all loads of one kind go before the passes."""
    items = kernel.items
    new = statements(items)
    n = len(items) - len(new)
    loads = [s for s in new if isinstance(s, LoadText)]
    for load in reversed(loads):
        k = next(i for i, s in enumerate(new) if s is load)
        new = moved(new, k, 0) or new
    why = "the memory is busy from the beginning"
    yield Change("all loads first", why, partial(replace, kernel, items=(*items[:n], *new)))
