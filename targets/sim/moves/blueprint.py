"""Whole kernels rebuilt from what they compute: where all lies, how it moves, and in which pieces.

Every step takes and returns a kernel. Nothing is known of a kernel but its tree.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from sim.npu.program import BITS, Factor, Placement, Tensor
from sim.npu.syntax import (
    CommitText,
    ContractText,
    Count,
    KernelText,
    LoadText,
    LookupText,
    LoopText,
    PassText,
    StoreText,
    SwitchText,
    Word,
)
from sim.npu.toolchain import Toolchain
from targets.sim.moves.attempt import attempt
from targets.sim.moves.exchange import stay
from targets.sim.moves.layout import laid_out
from targets.sim.moves.loads import is_small
from targets.sim.moves.order import moved
from targets.sim.moves.passes import copies, keep, undecoded
from targets.sim.moves.settle import at_place, settled
from targets.sim.moves.tree import Path, at, every, fresh, put, reads, statements, to_dm, writer

_N_SLICES = 256
_VRF_BYTES = (7_680, 6_144, 4_096)
"""Of one operand: the others need room too."""
_F32_BYTES = 4
_MAX_BUFFERS = 4
_ALIGNED_BYTES = 256
"""What memory likes parts of a row to be a multiple of."""


def unlooped(kernel: KernelText) -> KernelText:
    """Handle all tensors as a whole, each loaded by a command of its own."""
    while found := next(every(kernel, LoopText), None):
        kernel = put(kernel, found[0], *found[1].body)
    for path, load in reversed([*every(kernel, LoadText)]):
        pairs = zip(load.outputs, load.sources, strict=True)
        alone = (replace(load, outputs=(o,), sources=(s,), block=None) for o, s in pairs)
        kernel = put(kernel, path, *alone)
    return kernel


def in_pieces(kernel: KernelText, n: int) -> KernelText:
    """Give contractions operands of ``n`` f8 pieces on all lanes, and keep the tables."""
    while change := next(undecoded(kernel), None):
        kernel = change.make()
    for path, run in every(kernel, PassText):
        if run.commit.memory.text == "trf":
            dtype, lanes = Word("f8e4m3"), Count(8)
            commit = CommitText(Word("trf"), dtype, Count(n), lanes)
            kernel = put(kernel, path, replace(run, commit=commit))
    for change in keep(kernel):
        if change.name == "all tables kept":
            kernel = change.make()
    while copy := next(copies(kernel), None):
        kernel = copy.make()
    return kernel


def contractions(kernel: KernelText) -> Iterator[tuple[PassText, str]]:
    """Yield the passes that contract, and what they contract with."""
    for _, run in every(kernel, PassText):
        for stage in run.stages:
            if isinstance(stage, ContractText):
                yield run, stage.operand.text


def origin(kernel: KernelText, name: str) -> tuple[Path, LoadText] | None:
    """Find the load that a tensor comes from."""
    while found := writer(kernel, name):
        path, made = found
        if isinstance(made, LoadText):
            return path, made
        name = made.source.text
    return None


def spread(kernel: KernelText, columns: int) -> KernelText:
    """Lay contracted weights out by rows over clusters and slices, and by columns where needed.

    Args:
        kernel: what to change.
        columns: parts of a row at most, but more where there are too few rows.
    """
    layout = laid_out(kernel)
    for run, _ in [*contractions(kernel)]:
        if found := origin(kernel, run.source.text):
            path, load = found
            where = _grid(layout.chip[load.outputs[0].text], columns)
            kernel = at_place(kernel, path, where) if where else kernel
    return kernel


def _grid(tensor: Tensor, columns: int) -> Placement | None:
    """Return a placement over both clusters and all slices, with few parts of a row."""
    *rows, last = tensor.axes
    while columns > 1 and last.size * BITS[tensor.dtype] // 8 % (columns * _ALIGNED_BYTES):
        columns //= 2
    while rows and rows[0].size % 2 == 0 and columns < _N_SLICES:
        left, slices = _N_SLICES // columns, []
        for k, axis in enumerate(rows):
            size = axis.size // 2 if k == 0 else axis.size
            n = min(left, size & -size)
            slices.append(Factor("split", n, axis.root))
            left //= n
        if left == 1:
            slices.append(Factor("split", columns, last.root))
            cluster = Factor("split", 2, rows[0].root)
            return Placement("", cluster, tuple(f for f in slices if f.count > 1))
        columns *= 2
    return None


def carried(kernel: KernelText, n_copies: int, n_late: int) -> KernelText:
    """Load what is contracted with to a few slices and let the ring carry it on.

    Args:
        kernel: what to change.
        n_copies: slices that load an argument.
        n_late: slices that load a result of the same kernel, for which all wait.
    """
    for path, run in every(kernel, PassText):
        if SwitchText(None) in run.stages and not _reaches_trf(kernel, run.output.text):
            stages = tuple(s for s in run.stages if s != SwitchText(None))
            kernel = put(kernel, path, replace(run, stages=stages))
    for _, operand in [*contractions(kernel)]:
        kernel = _with_switch(kernel, operand)
        n = n_late if _late(kernel, operand) else n_copies
        seed = Factor("copy", n), Factor("idle", _N_SLICES // n)
        if found := origin(kernel, operand):
            kernel = at_place(kernel, found[0], Placement("", Factor("copy", 2), seed))
    return kernel


def _reaches_trf(kernel: KernelText, name: str) -> bool:
    runs = [run for _, run in every(kernel, PassText) if run.source.text == name]
    return any(
        run.commit.memory.text == "trf" or _reaches_trf(kernel, run.output.text) for run in runs
    )


def _with_switch(kernel: KernelText, operand: str) -> KernelText:
    """Broadcast an operand right before it is committed, unless it is on its way already."""
    name = operand
    while (found := writer(kernel, name)) and isinstance(made := found[1], PassText):
        if SwitchText(None) in made.stages:
            return kernel
        name = made.source.text
    found = writer(kernel, operand)
    if found is None or not isinstance(fill := found[1], PassText):
        return kernel
    name = fresh(kernel, fill.source.text)
    carry = to_dm(name, fill.source.text, "bf16", SwitchText(None))
    return put(kernel, found[0], carry, replace(fill, source=Word(name)))


def shared(kernel: KernelText, parts: int) -> KernelText:
    """Cut the streams that end in no contraction in ``parts``, with a short ring for their sums."""
    layout = laid_out(kernel)
    for path, load in [*every(kernel, LoadText)]:
        name = load.outputs[0].text
        tensor = layout.chip[name]
        streams = any(
            run.source.text == name and run.commit.memory.text == "dm"
            for _, run in every(kernel, PassText)
        )
        weight = layout.hbm[load.sources[0].name.text].part == "weight"
        if streams and tensor.axes and not weight and not _reaches_trf(kernel, name):
            path, _ = origin(kernel, name) or (path, load)
            kernel = at_place(kernel, path, _shares(tensor, parts))
    return kernel


def _shares(tensor: Tensor, parts: int) -> Placement:
    """Cut a vector in parts in both clusters; of a matrix, each row is whole in a slice."""
    axis, cluster = tensor.axes[0], Factor("copy", 2)
    if len(tensor.axes) > 1:
        cluster, parts = Factor("split", 2, axis.root), axis.size // 2
    split = Factor("split", parts, axis.root)
    return Placement("", cluster, (split, Factor("idle", _N_SLICES // parts)))


def in_runs(kernel: KernelText, n_bytes: int) -> KernelText:
    """Read contracted weights in runs of one length, where it divides a row."""
    layout = laid_out(kernel)
    for run, _ in contractions(kernel):
        if found := origin(kernel, run.source.text):
            path, load = found
            tensor = layout.chip[load.outputs[0].text]
            n = n_bytes * 8 // BITS[tensor.dtype]
            block = Count(n) if tensor.share[-1] % n == 0 else None
            kernel = put(kernel, path, replace(load, block=block))
    return kernel


def decoded_ahead(kernel: KernelText) -> KernelText:
    """Decode weights in a pass of its own where the other operand comes late."""
    for run, operand in [*contractions(kernel)]:
        path, _ = writer(kernel, run.output.text) or ((), None)
        table = run.stages[0]
        if isinstance(table, LookupText) and _late(kernel, operand):
            name = fresh(kernel, run.source.text)
            first = to_dm(name, run.source.text, table.dtype.text, table)
            second = replace(run, source=Word(name), stages=run.stages[1:])
            kernel = put(kernel, path, first, second)
    return kernel


def _late(kernel: KernelText, operand: str) -> bool:
    """Tell whether a tensor comes from one that the kernel stores."""
    found = origin(kernel, operand)
    stores = {s.target.name.text for _, s in every(kernel, StoreText)}
    earlier = {s.target.name.text for p, s in every(kernel, StoreText) if found and p < found[0]}
    return bool(found and found[1].sources[0].name.text in stores & earlier)


def kept_in_place(kernel: KernelText, toolchain: Toolchain) -> KernelText:
    """Keep results in their slices, and gather them there as late as the compiler takes it."""
    for name in [s.source.text for _, s in every(kernel, StoreText)]:
        changes = [c for c in stay(kernel) if c.name.startswith(f"{name} stays")]
        made = (settled(c.make()) for c in (*reversed(changes[1:]), *changes[:1]))
        kernel = next((k for k in made if attempt(k, toolchain)), kernel)
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
        if not late or _late(kernel, operand):
            kernel = _streamed(kernel, run.source.text, n)
    return kernel


def halved(kernel: KernelText) -> KernelText:
    """Let the ring carry one half of a late operand while the other is loaded."""
    for operand in dict.fromkeys(name for _, name in contractions(kernel)):
        found = origin(kernel, operand)
        if found and _late(kernel, operand):
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
