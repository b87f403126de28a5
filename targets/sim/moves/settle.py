"""Make a kernel whole again after a change: what follows from it elsewhere is changed too.

Sums get the reduces that their placements need and lose the others, switches that have nothing to
move go, operands are loaded to where the streams that need them lie, and what nobody uses goes.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from sim.npu.program import BITS, FLIT_BYTES, Factor, Placement, Tensor
from sim.npu.syntax import (
    AluText,
    AxisStage,
    ContractText,
    Count,
    HbmDecl,
    Item,
    KernelText,
    LoadText,
    LoopText,
    PassText,
    PlaceDecl,
    StageText,
    StoreText,
    SwitchText,
    Word,
)
from targets.sim.moves.layout import (
    Layout,
    declared,
    lies_alike,
    place_decl,
    same_place,
    switched,
)
from targets.sim.moves.tree import (
    Path,
    at,
    body_of,
    every,
    fresh,
    loaded,
    put,
    reads,
    statements,
    stored,
    walk,
    with_body,
    writer,
    writes,
)

_JOINED = 3
"""Tensors of a command that another one may join."""


def settled(kernel: KernelText) -> KernelText:
    """Return ``kernel`` with the consequences of a change drawn; it may still be illegal.

    An operand that two streams want in different places stays where it is, and so do all others.
    """
    kernel, layout = _with_stages(kernel)
    first = kernel = _with_loops(kernel, layout)
    moved: set[str] = set()
    while operand := _misplaced(kernel, layout):
        if operand[0].name in moved:
            kernel = first
            break
        moved.add(operand[0].name)
        kernel, layout = _with_stages(operand[1])
        kernel = _with_loops(kernel, layout)
    return without_unused(kernel)


def _with_stages(kernel: KernelText) -> tuple[KernelText, Layout]:
    """Give every pass the reduce that it needs, and no switch in vain."""
    layout = declared(kernel)

    def visit(item: Item, tiles: Mapping[str, int]) -> Item:
        if isinstance(item, LoopText):
            inner = {**tiles, item.axis.text: item.count.value}
            return replace(item, body=statements(visit(s, inner) for s in item.body))
        if isinstance(item, PassText) and item.source.text in layout.chip:
            stages = _stages(item, layout)
            item = item if stages == item.stages else replace(item, stages=stages)
        if isinstance(item, LoadText | PassText):
            layout.see(item)
            item = _fitting(item, layout, tiles)
        return item

    return replace(kernel, items=tuple(visit(item, {}) for item in kernel.items)), layout


def _fitting(
    item: LoadText | PassText, layout: Layout, tiles: Mapping[str, int]
) -> LoadText | PassText:
    """Halve the block of a load, or the lanes of an operand, until it divides a slice's part."""
    if isinstance(item, LoadText) and item.block:
        n = item.block.value
        tensors = [t for name in writes(item) if (t := layout.chip[name]).axes]
        rows = [t.share[-1] // tiles.get(t.axes[-1].root, 1) for t in tensors]
        while n % 2 == 0 and any(row % n for row in rows):
            n //= 2
        return item if n == item.block.value else replace(item, block=Count(n))
    operand = None if isinstance(item, LoadText) else layout.chip.get(item.output.text)
    if isinstance(item, PassText) and operand and operand.memory == "trf":
        n, n_bits = operand.lanes, prod(operand.share) * BITS[operand.dtype]
        while n % 2 == 0 and n_bits % (8 * FLIT_BYTES * n):
            n //= 2
        if n != operand.lanes:
            return replace(item, commit=replace(item.commit, lanes=Count(n)))
    return item


def _stages(run: PassText, layout: Layout) -> tuple[StageText, ...]:
    source = layout.chip[run.source.text]
    assert source.placement is not None, source.name
    kept = tuple(s for s in run.stages if not _is_reduce(s) and not _in_vain(s, source.placement))
    where = switched(run, source)
    cut = [a.name for a in layout.summed(run) if where.n_slice_parts(a.root) > 1]
    return (*kept, *(AxisStage("reduce", Word(name)) for name in cut))


def _with_loops(kernel: KernelText, layout: Layout) -> KernelText:
    """Let no loop tile an axis that is reduced in it: tile another axis of the result instead."""
    for path, loop in every(kernel, LoopText):
        reduce = AxisStage("reduce", loop.axis)
        for _, run in every(replace(kernel, items=loop.body), PassText):
            result = layout.chip.get(run.output.text)
            if reduce in run.stages and result and result.axes:
                kernel = put(kernel, path, over(loop, result, result.axes[0].root))
    return kernel


def over(loop: LoopText, result: Tensor, axis: str) -> LoopText:
    """Return a loop over another axis, with no fewer tiles as far as a slice's share allows."""
    n = max(n for n, a in zip(result.share, result.axes, strict=True) if a.root == axis)
    count = min((d for d in range(loop.count.value, n) if n % d == 0), default=max(n, 1))
    return replace(loop, axis=Word(axis), count=Count(count))


def _is_reduce(stage: StageText) -> bool:
    return isinstance(stage, AxisStage) and stage.kind == "reduce"


def _in_vain(stage: StageText, where: Placement) -> bool:
    if not isinstance(stage, SwitchText):
        return False
    if stage.axis:
        return where.n_slice_parts(stage.axis.text) == 1
    return not any(f.kind == "idle" and f.count > 1 for f in where.slices)


def _misplaced(kernel: KernelText, layout: Layout) -> tuple[Tensor, KernelText] | None:
    """Return the first operand that does not lie as its stream, and the kernel with it moved."""
    for _, run in every(kernel, PassText):
        if run.source.text not in layout.chip:
            continue
        stream = switched(run, layout.chip[run.source.text])
        for name in (name for stage in run.stages for name in _operands(stage)):
            operand = layout.chip.get(name)
            if operand and not lies_alike(operand, stream):
                moved = _moved(kernel, layout, operand, stream)
                if moved is not None:
                    return operand, moved
    return None


def _operands(stage: StageText) -> tuple[str, ...]:
    if isinstance(stage, ContractText):
        return (stage.operand.text, *([stage.scale.text] if stage.scale else []))
    if isinstance(stage, AluText):
        return tuple(o.text for o in stage.operands if isinstance(o, Word) and o.text != "self")
    return ()


def _moved(
    kernel: KernelText, layout: Layout, operand: Tensor, stream: Placement
) -> KernelText | None:
    """Load what an operand is made of to where it lies as ``stream`` does."""
    name, broadcast = operand.name, False
    while True:
        found = writer(kernel, name)
        if found is None:
            return None
        path, made = found
        if isinstance(made, LoadText):
            break
        broadcast |= any(isinstance(s, SwitchText) and s.axis is None for s in made.stages)
        name = made.source.text
    before = layout.places[made.place.text]
    where = _wanted(operand, stream, before, broadcast)
    if same_place(where, before):
        return None
    if len(made.outputs) > 1:
        kernel = _alone(kernel, path, made, name)
        path = (*path[:-1], path[-1] + 1)
    return _joined(at_place(kernel, path, where), name)


def _alone(kernel: KernelText, path: Path, load: LoadText, name: str) -> KernelText:
    """Load one tensor in a command of its own, behind that of the others."""
    k = writes(load).index(name)
    one = replace(load, outputs=load.outputs[k : k + 1], sources=load.sources[k : k + 1])
    outputs = load.outputs[:k] + load.outputs[k + 1 :]
    sources = load.sources[:k] + load.sources[k + 1 :]
    return put(kernel, path, replace(load, outputs=outputs, sources=sources), one)


def _joined(kernel: KernelText, name: str) -> KernelText:
    """Load a tensor that moved together with those that the next command loads to its place."""
    path, load = writer(kernel, name) or ((0,), None)
    body, k = body_of(kernel, path), path[-1]
    after = body[k + 1] if k + 1 < len(body) else None
    if not isinstance(load, LoadText) or not isinstance(after, LoadText):
        return kernel
    if (load.place, load.block) != (after.place, after.block) or len(after.outputs) > _JOINED:
        return kernel
    both = replace(load, outputs=load.outputs + after.outputs, sources=load.sources + after.sources)
    return with_body(kernel, path, (*body[:k], both, *body[k + 2 :]))


def _wanted(operand: Tensor, stream: Placement, before: Placement, broadcast: bool) -> Placement:
    """Return a placement like that of ``stream``, for a tensor that may lack axes of it."""
    cluster = Factor("copy", stream.cluster.count)
    roots = {axis.root for axis in operand.axes}
    if stream.cluster.axis in roots:
        cluster = stream.cluster
    if not operand.axes and before.n_slices == stream.n_slices:
        return Placement("", cluster, before.slices)
    copies = max((f.count for f in before.slices if f.kind == "copy"), default=1)
    slices: list[Factor] = []
    for f in stream.slices:
        if f.axis in roots:
            slices.append(f)
        elif not broadcast:
            slices.append(f if f.kind == "idle" else Factor("copy", f.count))
        else:
            n = min(copies, f.count)
            slices += [Factor("copy", n), Factor("idle", f.count // n)]
            copies //= n
    return Placement("", cluster, tuple(slices))


def at_place(kernel: KernelText, path: Path, where: Placement) -> KernelText:
    """Let a load go to another placement, declared if no other is the same."""
    layout = declared(kernel)
    name = next((n for n, p in layout.places.items() if same_place(p, where)), None)
    k = max(i for i, item in enumerate(kernel.items) if isinstance(item, PlaceDecl))
    load = at(kernel, path)
    assert isinstance(load, LoadText), path
    if name is not None:
        return put(kernel, path, replace(load, place=Word(name)))
    name = fresh(kernel, load.place.text)
    kernel = put(kernel, path, replace(load, place=Word(name)))
    return put(kernel, (k,), kernel.items[k], place_decl(name, where))


def without_unused(kernel: KernelText) -> KernelText:
    """Remove loads, passes, placements and scratch that nothing uses."""
    while True:
        smaller = _without_unused(kernel)
        if smaller == kernel:
            return kernel
        kernel = smaller


def _without_unused(kernel: KernelText) -> KernelText:
    leaves = [s for _, s in walk(kernel.items) if not isinstance(s, LoopText)]
    used = {name for s in leaves for name in reads(s)}
    places = {s.place.text for s in leaves if isinstance(s, LoadText)}
    loaded_hbm = {name for s in leaves for name in loaded(s)}
    hbm = loaded_hbm.union(*map(stored, leaves))
    decls = (item for item in kernel.items if isinstance(item, HbmDecl))
    scratch = {decl.name.text for decl in decls if decl.part.text == "scratch"}

    def keep(item: Item) -> tuple[Item, ...]:
        match item:
            case LoopText():
                body = statements(kept for inner in item.body for kept in keep(inner))
                return (replace(item, body=body),) if body else ()
            case LoadText(outputs, sources):
                pairs = [p for p in zip(outputs, sources, strict=True) if p[0].text in used]
                if not pairs:
                    return ()
                outputs, sources = zip(*pairs, strict=True)
                return (replace(item, outputs=outputs, sources=sources),)
            case StoreText(target=target):
                return () if target.name.text in scratch - loaded_hbm else (item,)
            case PassText(output):
                return (item,) if output.text in used else ()
            case PlaceDecl(name):
                return (item,) if name.text in places else ()
            case HbmDecl(name):
                return (item,) if name.text in hbm or name.text not in scratch else ()
            case _:
                return (item,)

    return replace(kernel, items=tuple(kept for item in kernel.items for kept in keep(item)))
