"""Moves of data between slices: through HBM, around the ring, or not at all."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sim.npu.program import Factor, Placement, Tensor
from sim.npu.syntax import KernelText, LoadText, PassText, StoreText, SwitchText, Word
from targets.sim.moves.change import Change, ready
from targets.sim.moves.layout import laid_out
from targets.sim.moves.settle import at_place
from targets.sim.moves.tree import at, every, fresh, put, renamed, to_dm, writer


def stay(kernel: KernelText) -> Iterator[Change]:
    """Use a result where it lies instead of storing it to scratch and loading it again."""
    layout = laid_out(kernel)
    for _, store in every(kernel, StoreText):
        for path, load in every(kernel, LoadText):
            names = [r.name.text for r in load.sources]
            if (
                store.target.name.text not in names
                or layout.hbm[store.target.name.text].part != "scratch"
            ):
                continue
            k = names.index(store.target.name.text)
            here, there = store.source.text, load.outputs[k].text
            direct = renamed(_without_output(kernel, path, load, k), {there: here})
            what, why = f"{here} stays for {there}", "no store, no sync, no load"
            yield Change(what, why, ready(direct))
            yield from _gathered(direct, layout.chip[here], what)


def _without_output(
    kernel: KernelText, path: tuple[int, ...], load: LoadText, k: int
) -> KernelText:
    if len(load.outputs) == 1:
        return put(kernel, path)
    outputs = load.outputs[:k] + load.outputs[k + 1 :]
    sources = load.sources[:k] + load.sources[k + 1 :]
    return put(kernel, path, replace(load, outputs=outputs, sources=sources))


def _gathered(kernel: KernelText, source: Tensor, what: str) -> Iterator[Change]:
    """Yield ways to make an axis whole somewhere on the way from a tensor."""
    where = source.placement
    assert where is not None, source.name
    for axis in source.axes:
        if where.n_slice_parts(axis.root) > 1:
            for name in _downstream(kernel, source.name):
                make = partial(gather_at, kernel, name, axis.name)
                why = "partial sums and a gather instead of a way through HBM"
                yield Change(f"{what}, {axis.name} gathered at {name}", why, make)


def _downstream(kernel: KernelText, name: str) -> list[str]:
    """Return a tensor and all in DM that are made of it, in order."""
    found = [name]
    for _, run in every(kernel, PassText):
        if run.source.text in found and run.commit.memory.text == "dm":
            found.append(run.output.text)
    return found


def gather_at(kernel: KernelText, name: str, axis: str) -> KernelText:
    """Let all that reads a tensor read it with one axis gathered; reductions stay before."""
    found = writer(kernel, name)
    assert found is not None, name
    new = fresh(kernel, name)
    changed = kernel
    for path, run in every(kernel, PassText):
        sums = any(getattr(s, "kind", "") == "sum" for s in run.stages)
        if not sums:
            changed = put(changed, path, renamed_pass(run, {name: new}))
    for path, store in every(kernel, StoreText):
        if store.source.text == name:
            changed = put(changed, path, replace(store, source=Word(new)))
    gather = to_dm(new, name, "bf16", SwitchText(Word(axis)))
    path = found[0]
    return put(changed, path, at(changed, path), gather)


def renamed_pass(run: PassText, names: dict[str, str]) -> PassText:
    """Let one pass read other tensors."""
    (new,) = renamed(replace(_EMPTY, items=(run,)), names).items
    assert isinstance(new, PassText)
    return new


_EMPTY = KernelText(Word("k"), ())


def gather(kernel: KernelText) -> Iterator[Change]:
    """Give every slice a whole axis of some tensor."""
    layout = laid_out(kernel)
    for _, run in every(kernel, PassText):
        tensor = layout.chip[run.output.text]
        if tensor.memory == "dm" and tensor.placement is not None:
            for axis in tensor.axes:
                if tensor.placement.n_slice_parts(axis.root) > 1:
                    make = partial(gather_at, kernel, tensor.name, axis.name)
                    what = f"{axis.name} of {tensor.name} gathered"
                    yield Change(what, "what follows has all of it", make)


def ring(kernel: KernelText) -> Iterator[Change]:
    """Load few copies and let the ring carry them, instead of many."""
    layout = laid_out(kernel)
    for path, load in every(kernel, LoadText):
        before = layout.places[load.place.text]
        copies = max((f.count for f in before.slices if f.kind == "copy"), default=1)
        if len(load.outputs) > 1 or copies < 2:
            continue
        name = load.outputs[0].text
        tensor = layout.chip[name]
        for n in (1, 8, 16, 32):
            if copies % n == 0 and n < copies and tensor.dtype in ("bf16", "f32"):
                where = _with_idle(before, n)
                changed = _broadcast(kernel, path, name, tensor.dtype)
                what = f"{n} copies of {name} and the ring"
                yield Change(
                    what, "a copy costs its bytes again", partial(at_place, changed, path, where)
                )


def _broadcast(kernel: KernelText, path: tuple[int, ...], name: str, dtype: str) -> KernelText:
    new = fresh(kernel, name)
    changed = renamed(kernel, {name: new})
    return put(changed, path, at(changed, path), to_dm(new, name, dtype, SwitchText(None)))


def _with_idle(where: Placement, n: int) -> Placement:
    """Let all but ``n`` of the copies in the largest factor of copies be idle."""
    k = max(
        (i for i, f in enumerate(where.slices) if f.kind == "copy"),
        key=lambda i: where.slices[i].count,
    )
    pair = Factor("copy", n), Factor("idle", where.slices[k].count // n)
    return Placement("", where.cluster, (*where.slices[:k], *pair, *where.slices[k + 1 :]))
