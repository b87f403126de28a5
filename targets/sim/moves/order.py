"""Moves of statements: what is begun first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sim.npu.syntax import KernelText, LoadText, LoopText, PassText, StatementText
from targets.sim.moves.change import Change, label
from targets.sim.moves.tree import (
    Path,
    body_of,
    every,
    independent,
    reads,
    statements,
    with_body,
    writes,
)


def order(kernel: KernelText) -> Iterator[Change]:
    """Move one statement to before another, and what it needs along with it."""
    paths = [(0,), *((*path, 0) for path, _ in every(kernel, LoopText))]
    for path in paths:
        mine = statements(body_of(kernel, path))
        for k, s in enumerate(mine):
            for to in _places(mine, k):
                where = f"before {label(mine[to])}" if to < len(mine) else "to the end"
                why = "engines begin it " + ("sooner" if to < k else "when others are served")
                make = partial(_reordered, kernel, path, k, to)
                yield Change(f"{label(s)} {where}", why, make)


def _reordered(kernel: KernelText, path: Path, k: int, to: int) -> KernelText:
    """Return the kernel as it is if it would mean something else."""
    body = body_of(kernel, path)
    mine = statements(body)
    declarations = body[: len(body) - len(mine)]
    return with_body(kernel, path, (*declarations, *(moved(mine, k, to) or mine)))


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
    ranks = [place[id(s)] for s in before]
    return all(
        ranks[i] < ranks[j] or independent(before[i], before[j])
        for i in range(len(before))
        for j in range(i + 1, len(before))
    )


def sort_loads(kernel: KernelText) -> Iterator[Change]:
    """Let all loads go before the passes, as far as they can."""
    yield Change("all loads first", "memory is busy from the start", partial(_loads_first, kernel))


def _loads_first(kernel: KernelText) -> KernelText:
    mine = statements(kernel.items)
    declarations = kernel.items[: len(kernel.items) - len(mine)]
    for load in reversed([s for s in mine if isinstance(s, LoadText)]):
        k = next(i for i, s in enumerate(mine) if s is load)
        mine = moved(mine, k, 0) or mine
    return replace(kernel, items=(*declarations, *mine))
