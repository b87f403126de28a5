"""The work of one command: what the static and the device model both start from.

A pass keeps the units of a slice busy side by side; a load moves bytes in runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

from sim.npu.expand import Site
from sim.npu.faults import placement_of
from sim.npu.program import (
    BITS,
    BLOCK,
    FLIT_BYTES,
    Alu,
    Contract,
    Load,
    Lookup,
    Pass,
    Reduce,
    Stage,
    Sum,
    Switch,
    Tensor,
)
from sim.npu.toolchain import Rates

Unit = Literal["fetch", "lookup", "switch", "contract", "vector", "reduce", "commit"]
"""Of a slice's tensor unit; those of one pass work at the same time."""


@dataclass(frozen=True)
class Transfer:
    """What a load moves of one tensor into one cluster."""

    n_bytes: float
    """Copies included."""
    n_copies: int
    run_bytes: int
    """Bytes that lie together in HBM and in a slice."""


def transfers(site: Site, load: Load) -> tuple[Transfer, ...]:
    """Return what ``load`` moves, by tensor."""
    return tuple(
        Transfer(
            prod(site.share(t)) * BITS[t.dtype] / 8 * t.n_parts * t.n_copies,
            t.n_copies,
            _run_bytes(site, t),
        )
        for t in load.outputs
    )


def _run_bytes(site: Site, tensor: Tensor) -> int:
    """Return how many bytes are contiguous on both sides: inner axes as long as they are whole."""
    if tensor.block and tensor.axes:
        return tensor.block * BITS[tensor.dtype] // 8
    n = 1
    for axis, share in zip(reversed(tensor.axes), reversed(site.share(tensor)), strict=True):
        n *= share
        if share != axis.size:
            break
    return max(1, n * BITS[tensor.dtype] // 8)


def unit_cycles(site: Site, run: Pass, rates: Rates) -> dict[Unit, float]:
    """Return how long ``run`` keeps each unit busy, in static cycles."""
    rate = rates.main_bytes if run.context == "main" else rates.sub_bytes
    flow = _Flow(site, run, rates)
    cycles: dict[Unit, float] = {
        "fetch": flow.n * BITS[run.source.dtype] / 8 / rate,
        "commit": flow.made * BITS[run.output.dtype] * run.output.pieces / 8 / rate,
    }
    for stage in run.stages:
        for unit, needed in flow.pass_through(stage):
            cycles[unit] = max(cycles.get(unit, 0.0), needed)
    return cycles


class _Flow:
    """Elements of a slice's tile on their way through the stages of a pass."""

    def __init__(self, site: Site, run: Pass, rates: Rates) -> None:
        self._site, self._run, self._rates = site, run, rates
        self.made = prod(site.share(run.output))
        self.n: float = prod(site.share(run.source))

    def pass_through(self, stage: Stage) -> Iterator[tuple[Unit, float]]:
        """Yield the cycles that ``stage`` takes of each unit; go on behind it."""
        rates = self._rates
        match stage:
            case Lookup(dtype=dtype):
                rate = rates.f4_lookups if dtype == "f8e4m3" else rates.f8_lookups
                yield "lookup", self.n / rate
            case Switch():
                yield "switch", self._switch(stage)
            case Contract(operand=operand, scale=scale):
                if scale:
                    yield "vector", self.n / BLOCK / rates.vector_elements
                yield "contract", self._contract(operand)
            case Alu() | Sum():
                yield "vector", self.n / rates.vector_elements
            case Reduce(axis=axis):
                yield "reduce", self._ring(axis) * ceil(self.made * 4 / FLIT_BYTES)

    def _switch(self, stage: Switch) -> float:
        """Each slice passes on, flit by flit, what the others of its ring send."""
        run = self._run
        ring = self._ring(stage.axis)
        if stage.kind == "gather":
            self.n *= ring
        dtype = run.source.dtype if run.output.memory == "trf" else run.output.dtype
        return ring * ceil(self.n * BITS[dtype] / 8 / FLIT_BYTES)

    def _contract(self, operand: Tensor) -> float:
        rates = self._rates
        macs = rates.f8_macs if operand.dtype == "f8e4m3" else rates.bf16_macs
        cycles = self.n * operand.pieces / (macs * operand.lanes / 8)
        self.n /= prod(self._site.share(operand))
        return cycles

    def _ring(self, axis: str) -> int:
        """Return the slices that exchange data: those that cut ``axis``, or idle ones for ""."""
        factors = placement_of(self._run.source).slices
        kind = "split" if axis else "idle"
        return prod(f.count for f in factors if (f.kind, f.axis) == (kind, axis))
