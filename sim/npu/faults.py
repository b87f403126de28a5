"""What compiles and does not do what it says: the chip's silent faults, found in a program."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final, Literal

from sim.npu.program import (
    BITS,
    FLIT_BYTES,
    VRF_ITEM_BYTES,
    Alu,
    Axis,
    Factor,
    Load,
    Loop,
    Offset,
    Pass,
    Placement,
    Position,
    Program,
    Region,
    Statement,
    Store,
    Switch,
    Tensor,
)

FaultKind = Literal[
    "hang",
    "stale operand",
    "unchained",
    "packet-major",
    "idle operand",
    "sub roll",
    "unreplicated",
    "unwritten",
]
"""- hang: the device job never ends.
- stale operand: a switch pass into TRF leaves what was there.
- unchained: a sub pass into VRF does not apply its ALU stages.
- packet-major: gathered parts of several flits arrive flit by flit, not part by part.
- idle operand: the stream reads 0 in slices that hold nothing of an operand.
- sub roll: the halves are not exchanged.
- unreplicated: of axes that the source lacks, a store writes index 0 alone.
- unwritten: a load reads scratch that nobody stored.
"""

HANGING_RING: Final = 8
"""A broadcast over so many idle slices, each of which gets more than `HANGING_BYTES`, hangs."""
HANGING_BYTES: Final = 8_192


@dataclass(frozen=True)
class Fault:
    """One statement's fault."""

    kind: FaultKind
    position: Position


def commands(body: tuple[Statement, ...]) -> Iterator[Load | Store | Pass]:
    """Yield the statements in program order, each once: a loop defines whole tensors."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from commands(statement.body)
        else:
            yield statement


def faults(program: Program) -> tuple[Fault, ...]:
    """Return every fault of a legal program, in program order."""
    found = []
    written: set[tuple[str, int | Offset | None]] = set()
    for statement in commands(program.body):
        kinds: tuple[FaultKind, ...]
        match statement:
            case Pass():
                kinds = pass_faults(statement)
            case Store():
                kinds = ("unreplicated",) if missing_axes(statement) else ()
                if not kinds:
                    written.add((statement.target.tensor.name, statement.target.index))
            case Load():
                known = all(_is_known(region, written) for region in statement.sources)
                kinds = () if known else ("unwritten",)
        found += [Fault(kind, statement.position) for kind in kinds]
    return tuple(found)


def _is_known(region: Region, written: set[tuple[str, int | Offset | None]]) -> bool:
    name = region.tensor.name
    return (
        region.tensor.part not in ("scratch", "out")
        or (name, None) in written
        or (name, region.index) in written
    )


def missing_axes(store: Store) -> tuple[int, ...]:
    """Return which axes of the target region the source lacks, by position."""
    axes = region_axes(store.target)
    return tuple(i for i, axis in enumerate(axes) if axis not in store.source.axes)


def region_axes(region: Region) -> tuple[Axis, ...]:
    """Return the axes of a region."""
    return region.tensor.axes[0 if region.index is None else 1 :]


def pass_faults(statement: Pass) -> tuple[FaultKind, ...]:
    """Return the faults of one pass."""
    sub = statement.context == "sub"
    memory = statement.output.memory
    switch = next((s for s in statement.stages if isinstance(s, Switch)), None)
    alu = any(isinstance(s, Alu) for s in statement.stages)
    found: dict[FaultKind, bool] = {
        "hang": (not sub and memory == "vrf") or _hanging_broadcast(statement, switch),
        "stale operand": switch is not None and memory == "trf",
        "unchained": sub and alu and memory == "vrf",
        "packet-major": switch is not None and _many_flits(statement, switch),
        "idle operand": any(live_parts(o, placed(statement)) for o in statement.operands),
        "sub roll": sub and statement.roll != "",
    }
    return tuple(kind for kind, there in found.items() if there)


def _hanging_broadcast(statement: Pass, switch: Switch | None) -> bool:
    if switch is None or switch.kind != "broadcast":
        return False
    ring = prod(f.count for f in placement_of(statement.source).slices if f.kind == "idle")
    return ring == HANGING_RING and statement.source.slice_bytes > HANGING_BYTES


def _many_flits(statement: Pass, switch: Switch) -> bool:
    if switch.kind != "gather":
        return False
    n_part = statement.source.share[statement.source.names.index(switch.axis)]
    return n_part > flit_elements(statement.output)


def flit_elements(tensor: Tensor) -> int:
    """Return how many committed elements a flit carries."""
    bits = 8 * VRF_ITEM_BYTES if tensor.memory == "vrf" else BITS[tensor.dtype]
    return FLIT_BYTES * 8 // bits


def placement_of(tensor: Tensor) -> Placement:
    """Return where a tensor on chip lies.

    Raises:
        ValueError: it lies in HBM.
    """
    if tensor.placement is None:
        raise ValueError(f"{tensor.name} lies in HBM; only tensors on chip have a placement")
    return tensor.placement


def placed(statement: Pass) -> Placement:
    """Return how the stream of a pass lies behind the switch, where it meets its operands."""
    before = placement_of(statement.source)
    switch = next((s for s in statement.stages if isinstance(s, Switch)), None)
    if switch is None:
        return before
    kind = "idle" if switch.kind == "broadcast" else "split"
    factors = tuple(
        Factor("copy", f.count) if (f.kind, f.axis) == (kind, switch.axis) else f
        for f in before.slices
    )
    return Placement("", before.cluster, factors)


def live_parts(operand: Tensor, stream: Placement) -> Mapping[str, tuple[bool, ...]]:
    """Tell which parts of a stream meet an operand that spans as many clusters and slices.

    Returns:
        By axis that the stream cuts, for each of its parts in order, whether the slices that hold
        it hold something of the operand; axes of which all parts do are left out.
    """
    empty = _empty_bits(placement_of(operand))
    parts: dict[str, tuple[bool, ...]] = {}
    stride = stream.n_slices
    for f in stream.slices:
        stride //= f.count
        if f.kind == "split":
            live = tuple(not i * stride & empty for i in range(f.count))
            parts[f.axis] = live * stream.n_cluster_parts(f.axis)
    return {axis: live for axis, live in parts.items() if not all(live)}


def _empty_bits(placement: Placement) -> int:
    """Return the bits of a slice's number that are 0 wherever the placement holds data."""
    bits, stride = 0, placement.n_slices
    for f in placement.slices:
        stride //= f.count
        if f.kind == "idle":
            bits |= (f.count - 1) * stride
    return bits
