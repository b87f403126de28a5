"""A checked program of the NPU: what the front end makes and all other parts read.

A program is in single assignment: every tensor on chip is written by one statement. A loop covers
its axis completely, so that each statement in it defines, over all iterations, one whole tensor;
tiles change what a program costs and never what it computes.

The chip has 2 clusters of 256 slices. All slices of all clusters in use run the same program, each
on its own part of every tensor.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, Literal

DType = Literal["bf16", "f32", "f8e4m3", "f4e2m1", "i64"]
Memory = Literal["hbm", "dm", "trf", "vrf"]
"""Off chip; a slice's SRAM; its contraction operands; its vector operands."""
Part = Literal["in", "weight", "inout", "out", "scratch"]
"""Of a tensor in HBM: an argument, or scratch, which holds garbage until it is stored to."""
Context = Literal["main", "sub"]
AluFunction = Literal["fma", "add", "sub", "max", "exp", "erf", "rsqrt", "mul", "div"]

BITS: Final[dict[DType, int]] = {"bf16": 16, "f32": 32, "f8e4m3": 8, "f4e2m1": 4, "i64": 64}
BLOCK: Final = 16
"""Consecutive f4e2m1 weights of a row that share one f8e4m3 scale."""
FLIT_BYTES: Final = 32
"""Unit of everything that passes the switch."""
VRF_ITEM_BYTES: Final = 4
"""The vector register file holds f32, whatever was fetched."""
SCALAR_BYTES: Final = 8
"""A tensor without axes takes one aligned word."""


@dataclass(frozen=True)
class Position:
    """A place in the source."""

    line: int
    """From 1."""
    column: int
    """From 1."""


@dataclass(frozen=True)
class Axis:
    """A named extent; axes of equal name are the same axis everywhere in a program."""

    name: str
    size: int
    """In elements."""
    parent: str = ""
    """The axis whose blocks of `BLOCK` elements this one counts; it is cut wherever that one is."""

    @property
    def root(self) -> str:
        """Name of the axis that placements and loops cut."""
        return self.parent or self.name


@dataclass(frozen=True)
class Factor:
    """One level of a placement: how the data differs over ``count`` neighbours."""

    kind: Literal["split", "copy", "idle"]
    """Each holds its part of `axis`; each holds the same; only the first holds anything."""
    count: int
    axis: str = ""
    """Only for ``split``."""


@dataclass(frozen=True)
class Placement:
    """Where a tensor's elements lie over clusters and slices.

    A tensor without the axis of a ``split`` factor is copied over that factor.
    """

    name: str
    """"" for one derived from a pass."""
    cluster: Factor
    """``count`` is 1 or 2."""
    slices: tuple[Factor, ...]
    """Outermost first; the product of the counts is 64, 128 or 256."""

    @property
    def n_clusters(self) -> int:
        """Clusters in use."""
        return self.cluster.count

    @property
    def n_slices(self) -> int:
        """Slices in use in each cluster, idle ones included."""
        return prod(f.count for f in self.slices)

    def n_cluster_parts(self, axis: str) -> int:
        """Parts that the clusters cut ``axis`` into."""
        return self.cluster.count if _splits(self.cluster, axis) else 1

    def n_slice_parts(self, axis: str) -> int:
        """Parts that the slices of one cluster cut ``axis`` into."""
        return prod(f.count for f in self.slices if _splits(f, axis))

    def strides(self, axis: str) -> tuple[tuple[int, int], ...]:
        """Return (distance in slices, count) of each factor that cuts ``axis``, outermost first.

        Two tensors lie alike along an axis if these and `n_cluster_parts` are equal.
        """
        found = []
        stride = self.n_slices
        for f in self.slices:
            stride //= f.count
            if _splits(f, axis) and f.count > 1:
                found.append((stride, f.count))
        return tuple(found)


def _splits(factor: Factor, axis: str) -> bool:
    return factor.kind == "split" and factor.axis == axis


@dataclass(frozen=True)
class Tensor:
    """A whole tensor; statements in a loop write one tile of it at a time."""

    name: str
    dtype: DType
    axes: tuple[Axis, ...]
    """Outermost first, as they lie in memory; none for a scalar."""
    memory: Memory
    position: Position
    placement: Placement | None = None
    """None exactly in HBM."""
    part: Part | None = None
    """Only in HBM."""
    block: int = 0
    """DM: elements of the last axis that lie together before the next row begins; 0: whole row."""
    lanes: int = 1
    """TRF: lanes that share the contraction axis; 1, 2, 4 or 8."""
    pieces: int = 1
    """TRF, f8e4m3: terms whose sum stands for each value, most significant first."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return tuple(a.size for a in self.axes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(a.name for a in self.axes)

    @property
    def n_bytes(self) -> int:
        """Of one copy of the whole tensor."""
        return max(1, prod(self.shape) * BITS[self.dtype] // 8)

    @cached_property
    def share(self) -> tuple[int, ...]:
        """Elements along each axis in one slice that holds data; the whole shape in HBM."""
        p = self.placement
        if p is None:
            return self.shape
        return tuple(
            a.size // (p.n_cluster_parts(a.root) * p.n_slice_parts(a.root)) for a in self.axes
        )

    @property
    def slice_bytes(self) -> int:
        """Memory that the whole tensor takes in one slice, all pieces included."""
        if not self.axes:
            return SCALAR_BYTES
        bits = 8 * VRF_ITEM_BYTES if self.memory == "vrf" else BITS[self.dtype]
        return prod(self.share) * bits * self.pieces // 8

    @cached_property
    def n_parts(self) -> int:
        """Slices of one cluster that hold different data."""
        if self.placement is None:
            return 1
        return prod(self.placement.n_slice_parts(a.root) for a in self.axes)

    @cached_property
    def n_copies(self) -> int:
        """Slices of one cluster that hold the same data."""
        if self.placement is None:
            return 1
        live = prod(f.count for f in self.placement.slices if f.kind != "idle")
        return live // self.n_parts


@dataclass(frozen=True)
class Offset:
    """An index known at launch: ``tensor[index]`` bytes from the start of the indexed tensor."""

    tensor: Tensor
    """i64, in HBM."""
    index: int


@dataclass(frozen=True)
class Region:
    """A tensor in HBM, or one index of its first axis."""

    tensor: Tensor
    index: int | Offset | None = None
    """None: all of it. Otherwise the first axis is gone."""


@dataclass(frozen=True)
class Load:
    """One DMA command: HBM to DM."""

    outputs: tuple[Tensor, ...]
    sources: tuple[Region, ...]
    """As many as outputs."""
    position: Position


@dataclass(frozen=True)
class Store:
    """One DMA command: DM to HBM. An axis that only the target has is *not* filled: index 0."""

    source: Tensor
    target: Region
    position: Position


@dataclass(frozen=True)
class Lookup:
    """Stage: decode codes by a table: f4e2m1 to f8e4m3, f8e4m3 to bf16; exact."""

    dtype: DType
    """Of the decoded values."""
    keep: bool
    """The table stays in the unit until a pass with another table or a switch needs its place."""


@dataclass(frozen=True)
class Switch:
    """Stage: move data between slices of a cluster.

    ``broadcast`` fills idle slices with the first one's data; ``gather`` gives every slice all
    parts of `axis`.
    """

    kind: Literal["broadcast", "gather"]
    axis: str
    """Only for ``gather``."""


@dataclass(frozen=True)
class Contract:
    """Stage: sum over the axes of `operand` of the stream times `operand`, in f32."""

    operand: Tensor
    """TRF."""
    scale: Tensor | None
    """VRF: each `BLOCK` of the contraction axis is multiplied by its element before the sum; its
    last axis counts those blocks."""


@dataclass(frozen=True)
class Alu:
    """Stage: one arithmetic unit, f32 in and out."""

    function: AluFunction
    operands: tuple["Tensor | float | Literal['self']", ...]
    """VRF tensor (a scalar or with axes of the stream), constant, or the value that entered the
    vector engine. ``fma`` has two (stream * first + second), functions of one value none."""


@dataclass(frozen=True)
class Sum:
    """Stage: sum over an axis within a slice."""

    axis: str


@dataclass(frozen=True)
class Reduce:
    """Stage: add the partial sums of the slices that cut `axis`; all of them get the sum."""

    axis: str


Stage = Lookup | Switch | Contract | Alu | Sum | Reduce


@dataclass(frozen=True)
class Pass:
    """One run of the tensor unit: fetch from DM, the stages in their fixed order, commit."""

    context: Context
    output: Tensor
    """In DM, TRF or VRF: where it commits to, rounded to its dtype."""
    source: Tensor
    """In DM."""
    roll: str
    """Axis whose two halves the fetch exchanges; "" for none."""
    stages: tuple[Stage, ...]
    position: Position

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Tensors that the stages read, in the order of the stages."""
        read: list[Tensor] = []
        for stage in self.stages:
            if isinstance(stage, Contract):
                read += [stage.operand, *([stage.scale] if stage.scale else [])]
            elif isinstance(stage, Alu):
                read += [o for o in stage.operands if isinstance(o, Tensor)]
        return tuple(read)


@dataclass(frozen=True)
class Loop:
    """Run `body` once for each of `count` equal tiles of `axis`.

    A statement in it works on the tile of every tensor that has the axis. Tile ``i`` is the i-th
    part of each slice's share, not of the whole axis.
    """

    index: str
    count: int
    axis: str
    buffers: int
    """Tiles that each tensor used in this loop alone has room for; a tile waits for a free one."""
    body: tuple["Statement", ...]
    position: Position


Statement = Load | Store | Pass | Loop


@dataclass(frozen=True)
class Program:
    """One kernel."""

    kernel: str
    axes: tuple[Axis, ...]
    arguments: tuple[Tensor, ...]
    """Tensors in HBM, scratch included, in the order of the source."""
    placements: tuple[Placement, ...]
    """Named ones, in the order of the source."""
    body: tuple[Statement, ...]
