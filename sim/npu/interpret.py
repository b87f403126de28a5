"""What a program computes at a launch, silent faults included: every tensor whole, to the bit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.npu.dtypes import Array
from sim.npu.faults import commands, faults
from sim.npu.memo import Memo
from sim.npu.memory import Hbm, strays
from sim.npu.program import Load, Pass, Position, Program, Store
from sim.npu.stream import run_pass
from sim.npu.values import Value

Outputs = Mapping[str, Array]
"""Codes of every out and inout argument after the launch."""


@dataclass(frozen=True)
class Hang:
    """The launch never ends."""

    position: Position
    """Of the statement that hangs."""


def run(
    program: Program, arguments: Mapping[str, Array], *, memo: Memo, seed: int
) -> Outputs | Hang:
    """Run a legal program once.

    Args:
        program: what the compiler made.
        arguments: codes of every in, weight and inout tensor, f4 packed; only their sizes must fit,
            not their shapes. Those that are not writeable cost least.
        memo: known values; gets the new ones.
        seed: of whatever the chip leaves undefined.

    Returns:
        New arrays, or where it hangs: at a fault, or at a DMA command that leaves its tensor.
    """
    steps = tuple(commands(program.body))
    hangs = [f.position for f in faults(program) if f.kind == "hang"]
    hangs += [s.position for s in steps if not isinstance(s, Pass) and strays(s, arguments)]
    if hangs:
        return Hang(min(hangs, key=lambda position: (position.line, position.column)))
    with np.errstate(all="ignore"):
        hbm = _run(steps, Hbm(arguments, memo, seed), memo, seed)
    return {t.name: hbm.codes(t) for t in program.arguments if t.part in ("out", "inout")}


def _run(steps: tuple[Load | Store | Pass, ...], hbm: Hbm, memo: Memo, seed: int) -> Hbm:
    chip: dict[str, Value] = {}
    for step in steps:
        match step:
            case Load():
                for output, region in zip(step.outputs, step.sources, strict=True):
                    chip[output.name] = hbm.load(region, output)
            case Store():
                hbm.store(step, chip[step.source.name])
            case Pass():
                chip[step.output.name] = run_pass(step, chip, memo, seed)
    return hbm
