"""What a program computes, silent faults included: every tensor whole, to the bit."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.npu.dtypes import Array
from sim.npu.faults import commands, faults
from sim.npu.memo import Launch, Memo, Node, digest
from sim.npu.memory import Hbm, region_key, span
from sim.npu.program import Load, Offset, Pass, Position, Program, Region, Store, Tensor
from sim.npu.stream import run_pass

Outputs = Mapping[str, Array]
"""Codes of every out and inout argument after a launch; not to be written to."""


@dataclass(frozen=True)
class Hang:
    """The launch never ends."""

    position: Position
    """Of the statement that hangs."""


@dataclass(frozen=True, eq=False)
class Meaning:
    """What a program computes, whatever it costs."""

    kernel: str
    hang: Hang | None
    """Whatever it is launched on."""
    indexed: tuple[tuple[Region, Position], ...]
    """Regions at an offset known at launch, which may lead out of their tensor."""
    outputs: tuple[tuple[Tensor, Node], ...]
    """Every out and inout argument with its codes at the end."""

    @cached_property
    def key(self) -> str:
        """Equal keys: the same results in every launch."""
        offsets = {region_key(region) for region, _ in self.indexed}
        nodes = tuple((tensor.name, node.key) for tensor, node in self.outputs)
        return digest(self.kernel, self.hang, sorted(map(repr, offsets)), nodes)


def meaning(program: Program) -> Meaning:
    """Return what a legal program computes; this computes nothing yet."""
    hbm, chip = Hbm(), dict[str, Node]()
    indexed: list[tuple[Region, Position]] = []
    for step in commands(program.body):
        match step:
            case Load():
                for output, region in zip(step.outputs, step.sources, strict=True):
                    chip[output.name] = hbm.load(region, output)
                    indexed.append((region, step.position))
            case Store():
                hbm.store(step, chip[step.source.name])
                indexed.append((step.target, step.position))
            case Pass():
                chip[step.output.name] = run_pass(step, chip)
    hang = next((Hang(f.position) for f in faults(program) if f.kind == "hang"), None)
    at_launch = tuple(i for i in indexed if isinstance(i[0].index, Offset))
    results = [t for t in program.arguments if t.part in ("out", "inout")]
    return Meaning(program.kernel, hang, at_launch, tuple((t, hbm.codes(t)) for t in results))


def run(what: Meaning, launch: Launch, memo: Memo) -> Outputs | Hang:
    """Run a program once.

    Args:
        what: the program's meaning.
        launch: inputs and seed.
        memo: known values of this launch; gets the new ones.

    Returns:
        The outputs, or where it hangs: at a fault, or at a DMA command that leaves its tensor.
    """
    if what.hang:
        return what.hang
    for region, position in what.indexed:
        taken = span(region, launch.arguments)
        if taken.start < 0 or taken.stop > region.tensor.n_bytes:
            return Hang(position)
    with np.errstate(all="ignore"):
        return {t.name: memo.value(node, launch).reshape(t.shape) for t, node in what.outputs}
