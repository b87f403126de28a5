"""Steps of a design that decide when data moves: loops, tiles, and the order of loads."""

from dataclasses import replace
from math import prod

from sim.npu.syntax import (
    Count,
    KernelText,
    LoadText,
    LookupText,
    LoopText,
    PassText,
    SwitchText,
    Word,
)
from sim.npu.toolchain import Toolchain
from targets.sim.moves.attempt import attempt
from targets.sim.moves.layout import laid_out
from targets.sim.moves.loads import is_small
from targets.sim.moves.order import moved
from targets.sim.moves.settle import settled
from targets.sim.moves.sources import contractions, is_late, origin
from targets.sim.moves.tree import Path, at, every, fresh, put, reads, statements, to_dm, writer

_VRF_BYTES = (7_680, 6_144, 4_096)
"""Of one vector operand: the others need room too."""
_F32_BYTES = 4
_MAX_BUFFERS = 4


def decoded_ahead(kernel: KernelText) -> KernelText:
    """Decode weights in a pass of its own where the other operand comes late."""
    for run, operand in [*contractions(kernel)]:
        path, _ = writer(kernel, run.output.text) or ((), None)
        table = run.stages[0]
        if isinstance(table, LookupText) and is_late(kernel, operand):
            name = fresh(kernel, run.source.text)
            first = to_dm(name, run.source.text, table.dtype.text, table)
            second = replace(run, source=Word(name), stages=run.stages[1:])
            kernel = put(kernel, path, first, second)
    return kernel


def tiled(kernel: KernelText, toolchain: Toolchain) -> KernelText:
    """Use vector operands that are too large for their memory in as few tiles as compile."""
    made = (settled(_tiled(kernel, room)) for room in _VRF_BYTES)
    return next((k for k in made if attempt(k, toolchain)), kernel)


def _tiled(kernel: KernelText, room: int) -> KernelText:
    """Let no vector operand take more than ``room`` bytes."""
    layout = laid_out(kernel)
    for name in [run.output.text for _, run in every(kernel, PassText)]:
        path, fill = writer(kernel, name) or ((), None)
        n_bytes = prod(layout.chip[name].share) * _F32_BYTES
        if isinstance(fill, PassText) and fill.commit.memory.text == "vrf" and n_bytes > room:
            kernel = _in_loop(kernel, path, fill, -(-n_bytes // room))
    return kernel


def _in_loop(kernel: KernelText, path: Path, fill: PassText, n: int) -> KernelText:
    """Fill and use an operand in a loop of ``n`` tiles or a few more, if they are in none."""
    layout = laid_out(kernel)
    users = [(p, s) for p, s in every(kernel, PassText) if fill.output.text in reads(s)]
    if len(path) > 1 or not users or len(users[0][0]) > 1:
        return kernel
    user, use = users[0]
    roots = {axis.root for axis in layout.chip[fill.output.text].axes}
    result = layout.chip[use.output.text]
    for axis, share in zip(result.axes, result.share, strict=True):
        if axis.root in roots:
            tiles = _n_tiles(share, n)
            index = Word(fresh(kernel, "t"))
            loop = LoopText(index, Count(tiles), Word(axis.root), None, (fill, use))
            return put(put(kernel, user, loop), path)
    return kernel


def _n_tiles(share: int, n: int) -> int:
    """Return a number of tiles that divides, ``n`` at least as far as that goes."""
    return next((t for t in range(n, share) if share % t == 0), share)


def small_first(kernel: KernelText) -> KernelText:
    """Load what is small before what is large."""
    mine = statements(kernel.items)
    declarations = kernel.items[: len(kernel.items) - len(mine)]
    chip = laid_out(kernel).chip
    loads = [s for s in mine if isinstance(s, LoadText) and is_small(chip[s.outputs[0].text])]
    for load in reversed(loads):
        k = next(i for i, s in enumerate(mine) if s is load)
        mine = moved(mine, k, 0) or mine
    return replace(kernel, items=(*declarations, *mine))


def streamed(kernel: KernelText, n: int, late: bool) -> KernelText:
    """Load contracted weights in ``n`` tiles of rows or a few more, and go on with each at once.

    Args:
        kernel: what to change.
        n: tiles; none if 0.
        late: only weights whose other operand comes late.
    """
    for run, operand in [*contractions(kernel)] if n else ():
        if not late or is_late(kernel, operand):
            kernel = _streamed(kernel, run.source.text, n)
    return kernel


def halved(kernel: KernelText) -> KernelText:
    """Let the ring carry one half of a late operand while the other is loaded."""
    for operand in dict.fromkeys(name for _, name in contractions(kernel)):
        found = origin(kernel, operand)
        if found and is_late(kernel, operand):
            users = [s for _, s in every(kernel, PassText) if s.source == found[1].outputs[0]]
            if [s.stages for s in users] == [(SwitchText(None),)]:
                kernel = _streamed(kernel, operand, 2)
    return kernel


def _streamed(kernel: KernelText, made: str, n: int) -> KernelText:
    """Tile the load behind a tensor, with the pass that reads it unless that is in a loop."""
    found = origin(kernel, made)
    if found is None or len(found[0]) > 1:
        return kernel
    (k, *_), load = found
    name = load.outputs[0]
    user = next((p for p, s in every(kernel, PassText) if s.source == name and len(p) == 1), None)
    tensor = laid_out(kernel).chip[name.text]
    shares = tensor.share[:-1] or tensor.share
    share, axis = max(zip(shares, tensor.axes, strict=False), key=lambda row: row[0])
    tiles = _n_tiles(share, n)
    body = (load, *statements([at(kernel, user)] if user else []))
    index = Word(fresh(kernel, "t"))
    loop = LoopText(index, Count(tiles), Word(axis.root), Count(min(tiles, _MAX_BUFFERS)), body)
    return put(put(kernel, user, loop), (k,)) if user else put(kernel, (k,), loop)
