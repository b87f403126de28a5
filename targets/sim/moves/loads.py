"""Moves of loads: several in one command, and the order in which HBM is read."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

from sim.npu.program import BITS, Tensor
from sim.npu.syntax import Count, KernelText, LoadText, PassText
from targets.sim.moves.change import Change, label
from targets.sim.moves.layout import laid_out
from targets.sim.moves.tree import body_of, every, independent, put, statements, with_body, writes

_SMALL_BYTES = 100_000
_BLOCK_BYTES = (32, 64, 128, 256, 512, 1_024, 2_048, 4_096)


def merge(kernel: KernelText) -> Iterator[Change]:
    """Load in one command what goes to the same placement."""
    for (first, second), make in _pairs(kernel):
        what = f"{label(first)} with {label(second)}"
        yield Change(what, "one command less, one wait less", make)


def _pairs(
    kernel: KernelText,
) -> Iterator[tuple[tuple[LoadText, LoadText], Callable[[], KernelText]]]:
    """Yield loads that can be one, where the first stands or else where the second does."""
    for (p, first), (q, second) in combinations(every(kernel, LoadText), 2):
        if p[:-1] != q[:-1] or (first.place, first.block) != (second.place, second.block):
            continue
        body, i, j = body_of(kernel, p), p[-1], q[-1]
        between = body[i + 1 : j]
        both = replace(
            first,
            outputs=first.outputs + second.outputs,
            sources=first.sources + second.sources,
        )
        new = None
        if all(independent(s, second) for s in statements(between)):
            new = (*body[:i], both, *between, *body[j + 1 :])
        elif all(independent(first, s) for s in statements(between)):
            new = (*body[:i], *between, both, *body[j + 1 :])
        if new is not None:
            yield (first, second), partial(with_body, kernel, p, new)


def is_small(tensor: Tensor) -> bool:
    """Tell whether a load takes about as long as it takes to begin."""
    return tensor.n_bytes <= _SMALL_BYTES


def merge_all(kernel: KernelText) -> Iterator[Change]:
    """Merge loads of small vectors as far as a command takes them."""
    for n in (4, 6):
        why = "each command costs a wait"
        yield Change(f"up to {n} in a load", why, partial(merged, kernel, n))


def merged(kernel: KernelText, n: int) -> KernelText:
    """Load up to ``n`` small operands in a command; what passes start from comes alone."""
    big = {t.name for t in laid_out(kernel).chip.values() if not is_small(t)}
    streams = {run.source.text for _, run in every(kernel, PassText) if run.context.text == "main"}

    def fits(pair: tuple[LoadText, LoadText]) -> bool:
        names = [name for load in pair for name in writes(load)]
        return len(names) <= n and not (big | streams) & {*names}

    while change := next((make for pair, make in _pairs(kernel) if fits(pair)), None):
        kernel = change()
    return kernel


def split(kernel: KernelText) -> Iterator[Change]:
    """Load one of several tensors in a command of its own."""
    for path, load in every(kernel, LoadText):
        for k in range(len(load.outputs)) if len(load.outputs) > 1 else ():
            alone = replace(load, outputs=(load.outputs[k],), sources=(load.sources[k],))
            rest = replace(
                load,
                outputs=load.outputs[:k] + load.outputs[k + 1 :],
                sources=load.sources[:k] + load.sources[k + 1 :],
            )
            for how, pair in (("first", (alone, rest)), ("last", (rest, alone))):
                what = f"{label(alone)} {how} of {label(load)}"
                yield Change(
                    what,
                    "who waits for one need not wait for all",
                    partial(put, kernel, path, *pair),
                )


def block(kernel: KernelText) -> Iterator[Change]:
    """Read HBM in runs of another length."""
    layout = laid_out(kernel)
    for path, load in every(kernel, LoadText):
        if load.block:
            new = replace(load, block=None)
            yield Change(f"{label(load)} by rows", "longer runs", partial(put, kernel, path, new))
        tensor = layout.chip[load.outputs[0].text]
        for n_bytes in _BLOCK_BYTES:
            n = Count(n_bytes * 8 // BITS[tensor.dtype])
            if tensor.axes and n != load.block and tensor.share[-1] % n.value == 0:
                what = f"{label(load)} in runs of {n_bytes} bytes"
                new = replace(load, block=n)
                yield Change(
                    what, "HBM has a length of runs that it likes", partial(put, kernel, path, new)
                )
