"""Steps of a design that decide where data lies: each takes and returns a kernel.

Nothing is known of a kernel but its tree.
"""

from dataclasses import replace

from sim.npu.program import BITS, Factor, Placement, Tensor
from sim.npu.syntax import (
    CommitText,
    Count,
    KernelText,
    LoadText,
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
from targets.sim.moves.passes import copies, keep, undecoded
from targets.sim.moves.settle import at_place, settled
from targets.sim.moves.sources import contractions, is_late, origin
from targets.sim.moves.tree import every, fresh, put, to_dm, writer

_N_SLICES = 256
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
        n = n_late if is_late(kernel, operand) else n_copies
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


def kept_in_place(kernel: KernelText, toolchain: Toolchain) -> KernelText:
    """Keep results in their slices, and gather them there as late as the compiler takes it."""
    for name in [s.source.text for _, s in every(kernel, StoreText)]:
        changes = [c for c in stay(kernel) if c.name.startswith(f"{name} stays")]
        made = (settled(c.make()) for c in (*reversed(changes[1:]), *changes[:1]))
        kernel = next((k for k in made if attempt(k, toolchain)), kernel)
    return kernel
