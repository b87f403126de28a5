"""Moves of loops: tiles, buffers, what is in them and what is not."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import gcd

from sim.npu.syntax import (
    Count,
    Item,
    KernelText,
    LoadText,
    LoopText,
    PassText,
    StatementText,
    StoreText,
    Word,
)
from targets.sim.moves.change import Change, label
from targets.sim.moves.layout import Layout, laid_out
from targets.sim.moves.settle import over
from targets.sim.moves.tree import (
    Path,
    at,
    body_of,
    every,
    fresh,
    independent,
    put,
    reads,
    statements,
    walk,
    with_body,
    writes,
)

_COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 30)
_BUFFERS = (1, 2, 3, 4, 6, 8)


def tiles(kernel: KernelText) -> Iterator[Change]:
    """Cut a loop into more or fewer tiles."""
    layout = laid_out(kernel)
    for path, loop in every(kernel, LoopText):
        share = _share(layout, loop, loop.axis.text)
        for n in _COUNTS:
            if n != loop.count.value and share % n == 0:
                new = replace(loop, count=Count(n))
                what = f"{label(loop)} in {n} tiles"
                yield Change(
                    what, "fewer commands, or more that overlap", partial(put, kernel, path, new)
                )


def _share(layout: Layout, statement: StatementText, axis: str) -> int:
    """Return the elements of an axis in a slice that all tensors which it writes have in common."""
    tensors = (layout.chip[name] for name in writes(statement))
    return gcd(
        *(n for t in tensors for n, a in zip(t.share, t.axes, strict=True) if a.root == axis)
    )


def other_axis(kernel: KernelText) -> Iterator[Change]:
    """Tile another axis of what a loop makes."""
    layout = laid_out(kernel)
    for path, loop in every(kernel, LoopText):
        for name in writes(loop)[-1:]:
            for axis in layout.chip[name].axes:
                new = over(loop, layout.chip[name], axis.root)
                what = f"{label(loop)} over {axis.root}"
                why = "rows one after the other need not wait for sums over columns"
                yield Change(what, why, partial(put, kernel, path, new))


def buffers(kernel: KernelText) -> Iterator[Change]:
    """Give a loop more or less room."""
    for path, loop in every(kernel, LoopText):
        for n in _BUFFERS:
            if n != (loop.buffers.value if loop.buffers else 1):
                new = replace(loop, buffers=Count(n))
                what = f"{label(loop)} with {n} buffers"
                yield Change(what, "loads run ahead of the passes", partial(put, kernel, path, new))


def unloop(kernel: KernelText) -> Iterator[Change]:
    """Handle whole tensors at once."""
    for path, loop in every(kernel, LoopText):
        what = f"{label(loop)} without loop"
        yield Change(
            what, "one large command instead of many", partial(put, kernel, path, *loop.body)
        )


def fission(kernel: KernelText) -> Iterator[Change]:
    """Cut a loop's body in two loops, of which one or the other may go."""
    for path, loop in every(kernel, LoopText):
        for k in range(1, len(loop.body)):
            name = Word(fresh(kernel, loop.index.text))
            first = replace(loop, body=loop.body[:k])
            second = replace(loop, body=loop.body[k:], index=name)
            what = f"{label(loop)} cut before {label(loop.body[k])}"
            halves: tuple[tuple[str, tuple[StatementText, ...]], ...] = (
                ("", (first, second)),
                (", the first whole", (*first.body, second)),
                (", the second whole", (first, *second.body)),
            )
            for how, new in halves:
                why = "what need not wait for each other's tiles runs apart"
                yield Change(what + how, why, partial(put, kernel, path, *new))


def hoist(kernel: KernelText) -> Iterator[Change]:
    """Do one load or pass of a loop before it, as a whole, with what it needs."""
    for path, statement in walk(kernel.items):
        for depth in range(1, len(path) if isinstance(statement, LoadText | PassText) else 0):
            loop = at(kernel, path[:depth])
            assert isinstance(loop, LoopText), path
            what = f"{label(statement)} before {label(loop)}"
            why = "once for all tiles: longer runs, fewer commands"
            yield Change(what, why, partial(_hoisted, kernel, path, depth))


def _hoisted(kernel: KernelText, path: Path, depth: int) -> KernelText:
    body = body_of(kernel, path)
    needed = _needed(body[: path[-1] + 1])
    rest = tuple(s for s in body if not any(s is n for n in needed))
    if not rest:
        return put(kernel, path[:depth], *needed)
    changed = with_body(kernel, path, rest)
    return put(changed, path[:depth], *needed, at(changed, path[:depth]))


def whole_loads(kernel: KernelText) -> Iterator[Change]:
    """Load everything before the loops that use it, and decode all that is not large there too."""
    why = "long runs, few commands, and loads that need not wait for passes"
    yield Change("all", why, partial(_all_hoisted, kernel, ""))
    for _, load in every(kernel, LoadText):
        for name in writes(load):
            yield Change(f"{name} too, decoded", why, partial(_all_hoisted, kernel, name))


def _all_hoisted(kernel: KernelText, decoded: str) -> KernelText:
    """Hoist all loads out of all loops, and the passes that read one of the tensors."""
    while path := next(_inner(kernel, decoded), None):
        kernel = _hoisted(kernel, path, 1)
    return kernel


def _inner(kernel: KernelText, decoded: str) -> Iterator[Path]:
    for path, s in walk(kernel.items):
        decodes = isinstance(s, PassText) and s.source.text == decoded
        if len(path) > 1 and (isinstance(s, LoadText) or decodes):
            yield path


def _needed(body: tuple[Item, ...]) -> tuple[StatementText, ...]:
    """Return the last statement and those before it that it needs, in order."""
    *before, last = [s for s in body if isinstance(s, LoopText | LoadText | StoreText | PassText)]
    found = [last]
    names = {*reads(last)}
    for s in reversed(before):
        if names & {*writes(s)}:
            found.insert(0, s)
            names |= {*reads(s)}
    return tuple(found)


def fuse_loops(kernel: KernelText) -> Iterator[Change]:
    """Make one loop of two neighbours, or of two with statements between that can go before."""
    for path, loop in every(kernel, LoopText):
        body, k = body_of(kernel, path), path[-1]
        j = next((j for j in range(k + 1, len(body)) if isinstance(body[j], LoopText)), None)
        other = body[j] if j else None
        if j is None or not isinstance(other, LoopText) or other.axis != loop.axis:
            continue
        between = body[k + 1 : j]
        if not all(isinstance(s, LoadText | PassText) and independent(loop, s) for s in between):
            continue
        for count in dict.fromkeys((loop.count, other.count)):
            fused = replace(loop, count=count, body=(*loop.body, *other.body))
            what = f"{label(loop)} with {label(other)} in {count.value} tiles"
            new = (*body[:k], *between, fused, *body[j + 1 :])
            yield Change(
                what, "tiles go on while they are there", partial(with_body, kernel, path, new)
            )


def interchange(kernel: KernelText) -> Iterator[Change]:
    """Exchange a loop with the only statement in it, another loop."""
    for path, loop in every(kernel, LoopText):
        if len(loop.body) == 1 and isinstance(inner := loop.body[0], LoopText):
            new = replace(inner, body=(replace(loop, body=inner.body),))
            what = f"{label(loop)} inside {inner.index.text}"
            yield Change(what, "another order of the tiles", partial(put, kernel, path, new))


def enloop(kernel: KernelText) -> Iterator[Change]:
    """Handle a load, a pass, or a few in a row tile by tile."""
    layout = laid_out(kernel)
    for path, first in walk(kernel.items):
        if len(path) > 1 or isinstance(first, LoopText | StoreText):
            continue
        axes = dict.fromkeys(a.root for t in writes(first) for a in layout.chip[t].axes)
        for n in (1, 2, 3):
            run = kernel.items[path[-1] : path[-1] + n]
            if len(run) < n or not all(isinstance(s, LoadText | PassText) for s in run):
                continue
            for axis, count in ((a, c) for a in axes for c in (2, 3, 5)):
                if any(_share(layout, s, axis) % count for s in statements(run)):
                    continue
                what = f"{';'.join(label(s) for s in statements(run))} in {count} tiles of {axis}"
                why = "the first tile is there before the last one is loaded"
                make = partial(_enlooped, kernel, path[-1], n, axis, count)
                yield Change(what, why, make)


def _enlooped(kernel: KernelText, k: int, n: int, axis: str, count: int) -> KernelText:
    room = Count(count if n == 1 else min(count, 2))
    index = Word(fresh(kernel, "t"))
    loop = LoopText(index, Count(count), Word(axis), room, statements(kernel.items[k : k + n]))
    return replace(kernel, items=(*kernel.items[:k], loop, *kernel.items[k + n :]))
