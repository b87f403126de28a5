"""Moves of placements: clusters, slices, copies and cuts."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, product

from sim.npu.program import Factor, Placement
from sim.npu.syntax import KernelText, LoadText, PlaceDecl, Word
from targets.sim.moves.change import Change, label, ready
from targets.sim.moves.layout import Layout, declared, laid_out, place_decl
from targets.sim.moves.settle import at_place
from targets.sim.moves.tree import every, put, writes

_MAX_COMBINED = 48
_PARTS = (2, 4, 16, 32, 256)


def place(kernel: KernelText) -> Iterator[Change]:
    """Change one placement, with all that lies there."""
    layout = laid_out(kernel)
    for k, item in enumerate(kernel.items):
        if isinstance(item, PlaceDecl):
            name = item.name.text
            for where, why in others(layout.places[name], _axes(kernel, layout, name)):
                decl = place_decl(name, where)
                yield Change(_named(name, decl), why, partial(put, kernel, (k,), decl))


def replace_load(kernel: KernelText) -> Iterator[Change]:
    """Change where one load goes, among several that go to the same placement."""
    layout = laid_out(kernel)
    loads = list(every(kernel, LoadText))
    for path, load in loads:
        if sum(other.place == load.place for _, other in loads) == 1:
            continue
        axes = [a.root for name in writes(load) for a in layout.chip[name].axes]
        for where, why in others(layout.places[load.place.text], dict.fromkeys(axes)):
            what = _named(",".join(writes(load)), place_decl("", where))
            yield Change(what, why, partial(at_place, kernel, path, where))


def move_load(kernel: KernelText) -> Iterator[Change]:
    """Let one load go to a placement that there is already."""
    layout = declared(kernel)
    for path, load in every(kernel, LoadText):
        for name in layout.places:
            if name != load.place.text:
                what = f"{','.join(writes(load))} to {name}"
                yield Change(
                    what,
                    "where another tensor lies already, it need not be moved",
                    partial(put, kernel, path, replace(load, place=Word(name))),
                )


def clusters(kernel: KernelText) -> Iterator[Change]:
    """Use the second cluster for everything: weights by rows, the rest copied."""
    layout = laid_out(kernel)
    decls = [(k, item) for k, item in enumerate(kernel.items) if isinstance(item, PlaceDecl)]
    weighty = {
        load.place.text
        for _, load in every(kernel, LoadText)
        if any(layout.hbm[r.name.text].part == "weight" for r in load.sources)
    }
    options = []
    for _, decl in decls:
        before = layout.places[decl.name.text]
        axes = [f.axis for f in before.slices if f.axis] if decl.name.text in weighty else []
        if axes:
            options.append([p for p, _ in _second_cluster(before, dict.fromkeys(axes))])
        elif before.n_clusters == 2:
            options.append([before])
        else:
            options.append([replace(before, cluster=Factor("copy", 2))])
    for i, chosen in enumerate(islice(product(*options), _MAX_COMBINED)):
        changed = kernel
        for (k, decl), where in zip(decls, chosen, strict=True):
            changed = put(changed, (k,), place_decl(decl.name.text, where))
        if changed != kernel:
            yield Change(
                f"clusters {i}", "twice the slices and twice the bandwidth", ready(changed)
            )


def relayout(kernel: KernelText) -> Iterator[Change]:
    """Lay the weights of one load out anew: rows over clusters, one or two axes over slices."""
    layout = laid_out(kernel)
    for path, load in every(kernel, LoadText):
        tensor = layout.chip[load.outputs[0].text]
        if layout.hbm[load.sources[0].name.text].part != "weight":
            continue
        for cluster, outer, inner in product(tensor.axes[:-1], tensor.axes, tensor.axes):
            for n in (256, 128, 64, 32, 16, 8, 4):
                if outer == inner or (n == 256 and inner != tensor.axes[-1]):
                    continue
                slices = Factor("split", n, outer.root), Factor("split", 256 // n, inner.root)
                where = Placement("", Factor("split", 2, cluster.root), slices)
                what = _named(label(load), place_decl("", where))
                why = "both clusters, all slices: shares of the weights without copies"
                yield Change(what, why, partial(at_place, kernel, path, where))


def _named(what: str, decl: PlaceDecl) -> str:
    slices = " ".join(f"{f.kind.text}:{f.count.value}" for f in decl.slices)
    return f"{what}@{decl.cluster.kind.text}/{slices}"


def _axes(kernel: KernelText, layout: Layout, name: str) -> dict[str, None]:
    """Return the axes of what is loaded to a placement, in order."""
    loads = (load for _, load in every(kernel, LoadText) if load.place.text == name)
    tensors = (layout.chip[output] for load in loads for output in writes(load))
    return dict.fromkeys(axis.root for tensor in tensors for axis in tensor.axes)


def others(where: Placement, axes: dict[str, None]) -> Iterator[tuple[Placement, str]]:
    """Yield placements one step away, with the reason."""
    one = replace(where, cluster=Factor("copy", 1))
    yield one, "one cluster alone needs no exchange with the other"
    yield from _second_cluster(where, axes)
    yield from _shifted(where)
    yield from _converted(where, axes)
    yield from _spans(where)


def _second_cluster(where: Placement, axes: dict[str, None]) -> Iterator[tuple[Placement, str]]:
    why = "the second cluster has slices and bandwidth of its own"
    yield replace(where, cluster=Factor("copy", 2)), why
    for axis in axes:
        cluster = Factor("split", 2, axis)
        yield replace(where, cluster=cluster), why
        for k, f in enumerate(where.slices):
            if f.axis == axis and f.count > 1:
                for j in range(len(where.slices)):
                    if j != k:
                        slices = _scaled(_scaled(where.slices, k, 1, 2), j, 2, 1)
                        yield Placement("", cluster, slices), why
                halved = _scaled(where.slices, k, 1, 2)
                yield Placement("", cluster, (*halved, Factor("idle", 2))), why


def _scaled(slices: tuple[Factor, ...], k: int, up: int, down: int) -> tuple[Factor, ...]:
    changed = replace(slices[k], count=slices[k].count * up // down)
    return (*slices[:k], changed, *slices[k + 1 :])


def _shifted(where: Placement) -> Iterator[tuple[Placement, str]]:
    """Move a power of two from one factor to another, or exchange two factors."""
    slices = where.slices
    for i, j in product(range(len(slices)), repeat=2):
        for n in (2, 4, 8):
            if i != j and slices[i].count % n == 0:
                moved = _scaled(_scaled(slices, i, 1, n), j, n, 1)
                yield replace(where, slices=moved), "other shares: longer runs or shorter rings"
    for i in range(len(slices) - 1):
        swapped = (*slices[:i], slices[i + 1], slices[i], *slices[i + 2 :])
        yield replace(where, slices=swapped), "who is next to whom decides what can be reduced"


def _converted(where: Placement, axes: dict[str, None]) -> Iterator[tuple[Placement, str]]:
    """Let a part of one factor be of another kind, outside or inside of what remains."""
    kinds = [Factor("copy", 1), Factor("idle", 1), *(Factor("split", 1, a) for a in axes)]
    for k, f in enumerate(where.slices):
        for kind, n in product(kinds, _PARTS):
            if (kind.kind, kind.axis) == (f.kind, f.axis) or f.count % n:
                continue
            if any(g.axis == kind.axis != "" for g in where.slices):
                continue
            new, left = replace(kind, count=n), replace(f, count=f.count // n)
            for pair in ((new, left), (left, new)):
                slices = (*where.slices[:k], *pair, *where.slices[k + 1 :])
                yield replace(where, slices=slices), _why(kind.kind)
                if left.count == 1:
                    break


def _why(kind: str) -> str:
    return {
        "copy": "copies from HBM save a way around the ring",
        "idle": "what the ring carries need not be loaded many times",
        "split": "more slices share the work along another axis",
    }[kind]


def _spans(where: Placement) -> Iterator[tuple[Placement, str]]:
    for k, f in enumerate(where.slices):
        if where.n_slices < 256:
            yield replace(where, slices=_scaled(where.slices, k, 2, 1)), "more slices in use"
        if where.n_slices > 64 and f.count % 2 == 0:
            yield replace(where, slices=_scaled(where.slices, k, 1, 2)), "fewer slices, longer runs"
