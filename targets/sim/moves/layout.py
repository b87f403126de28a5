"""Where every tensor of a kernel lies, read off its syntax tree without checking it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

from sim.npu.program import Axis, DType, Factor, Memory, Part, Placement, Position, Tensor
from sim.npu.syntax import (
    AxisDecl,
    AxisStage,
    ContractText,
    Count,
    FactorText,
    HbmDecl,
    KernelText,
    LoadText,
    LoopText,
    PassText,
    PlaceDecl,
    StatementText,
    SwitchText,
    Word,
)
from targets.sim.moves.tree import walk

_NOWHERE = Position(1, 1)


@dataclass
class Layout:
    """What the declarations and the statements seen so far define."""

    axes: dict[str, Axis] = field(default_factory=dict)
    hbm: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, Placement] = field(default_factory=dict)
    chip: dict[str, Tensor] = field(default_factory=dict)
    """Tensors on chip."""

    def see(self, statement: StatementText) -> None:
        """Add what a statement writes; one that reads what nobody wrote adds nothing."""
        if isinstance(statement, LoadText):
            self.chip.update(self._loaded(statement))
        elif isinstance(statement, PassText) and statement.source.text in self.chip:
            self.chip[statement.output.text] = self._committed(statement)

    def _loaded(self, load: LoadText) -> Iterator[tuple[str, Tensor]]:
        for word, region in zip(load.outputs, load.sources, strict=True):
            source = self.hbm[region.name.text]
            axes = source.axes if region.index is None else source.axes[1:]
            place = self.places[load.place.text]
            yield word.text, Tensor(word.text, source.dtype, axes, "dm", _NOWHERE, place)

    def _committed(self, run: PassText) -> Tensor:
        stream = self.chip[run.source.text]
        dtype = run.commit.dtype.text if run.commit.dtype else "f32"
        return Tensor(
            run.output.text,
            cast(DType, dtype),
            self.behind(run),
            cast(Memory, run.commit.memory.text),
            _NOWHERE,
            switched(run, stream),
            lanes=run.commit.lanes.value if run.commit.lanes else 1,
            pieces=run.commit.pieces.value if run.commit.pieces else 1,
        )

    def behind(self, run: PassText) -> tuple[Axis, ...]:
        """Return the axes that are left behind all stages of a pass."""
        gone = {axis.name for axis in self.summed(run)}
        return tuple(axis for axis in self.chip[run.source.text].axes if axis.name not in gone)

    def summed(self, run: PassText) -> tuple[Axis, ...]:
        """Return the axes that a pass contracts or sums over."""
        found: list[Axis] = []
        for stage in run.stages:
            if isinstance(stage, ContractText) and stage.operand.text in self.chip:
                found += self.chip[stage.operand.text].axes
            elif isinstance(stage, AxisStage) and stage.kind == "sum":
                found.append(self.axes[stage.axis.text])
        return tuple(found)


def declared(kernel: KernelText) -> Layout:
    """Return the layout before the first statement."""
    layout = Layout()
    for item in kernel.items:
        match item:
            case AxisDecl(name, parent, size):
                n = layout.axes[parent.text].size // size.value if parent else size.value
                layout.axes[name.text] = Axis(name.text, n, parent.text if parent else "")
            case HbmDecl(name, dtype, axes, part):
                layout.hbm[name.text] = Tensor(
                    name.text,
                    cast(DType, dtype.text),
                    tuple(layout.axes[axis.text] for axis in axes),
                    "hbm",
                    _NOWHERE,
                    part=cast(Part, part.text),
                )
            case PlaceDecl():
                layout.places[item.name.text] = placement(item)
            case _:
                pass
    return layout


def laid_out(kernel: KernelText) -> Layout:
    """Return the layout of a whole kernel."""
    layout = declared(kernel)
    for _, statement in walk(kernel.items):
        if not isinstance(statement, LoopText):
            layout.see(statement)
    return layout


def placement(decl: PlaceDecl) -> Placement:
    """Return a declared placement."""
    return Placement(decl.name.text, _factor(decl.cluster), tuple(map(_factor, decl.slices)))


def _factor(text: FactorText) -> Factor:
    match text.kind.text:
        case "one":
            return Factor("copy", 1)
        case "copy":
            return Factor("copy", text.count.value)
        case "idle":
            return Factor("idle", text.count.value)
        case axis:
            return Factor("split", text.count.value, axis)


def place_decl(name: str, where: Placement) -> PlaceDecl:
    """Write a placement; factors of one are left out, equal neighbours joined."""
    slices = tuple(map(_factor_text, _joined(where.slices)))
    cluster = where.cluster
    word = "one" if cluster.count == 1 else cluster.axis or "copy"
    return PlaceDecl(Word(name), FactorText(Word(word), Count(cluster.count)), slices)


def _joined(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    found: list[Factor] = []
    for f in factors:
        if found and (found[-1].kind, found[-1].axis) == (f.kind, f.axis):
            found[-1] = replace(f, count=f.count * found[-1].count)
        elif f.count > 1:
            found.append(f)
    return tuple(found)


def _factor_text(factor: Factor) -> FactorText:
    return FactorText(Word(factor.axis or factor.kind), Count(factor.count))


def same_place(a: Placement, b: Placement) -> bool:
    """Tell whether two placements differ in name alone."""
    return (a.cluster, _joined(a.slices)) == (b.cluster, _joined(b.slices))


def switched(run: PassText, source: Tensor) -> Placement:
    """Return how the stream of a pass lies behind its switch."""
    where = source.placement
    assert where is not None, source.name
    for stage in run.stages:
        if isinstance(stage, SwitchText):
            kind = ("split", stage.axis.text) if stage.axis else ("idle", "")
            slices = (
                Factor("copy", f.count) if (f.kind, f.axis) == kind else f for f in where.slices
            )
            return Placement("", where.cluster, tuple(slices))
    return where


def lies_alike(operand: Tensor, stream: Placement) -> bool:
    """Tell whether each slice holds the part of an operand that its part of a stream needs."""
    own = operand.placement
    assert own is not None, operand.name
    if (own.n_clusters, own.n_slices) != (stream.n_clusters, stream.n_slices):
        return False
    return all(_cuts(own, axis.root) == _cuts(stream, axis.root) for axis in operand.axes)


def _cuts(where: Placement, axis: str) -> tuple[object, ...]:
    return where.n_cluster_parts(axis), where.strides(axis)
