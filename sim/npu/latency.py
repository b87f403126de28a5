"""What a command takes on the device when nothing stands in its way."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from operator import itemgetter

from sim.npu.expand import Command, Site
from sim.npu.faults import placement_of
from sim.npu.program import Load, Pass, Store, Switch
from sim.npu.toolchain import DeviceCosts, Toolchain
from sim.npu.work import Unit, transfers, unit_cycles


@dataclass(frozen=True)
class Latency:
    """How long a command holds its engine: first the fixed part, then the stream."""

    fixed: float
    """Device cycles."""
    streamed: float
    """Bytes at the cluster's full rate."""
    drain: float
    """Device cycles until its result can be used, the engine free already."""


def latencies(commands: Sequence[Command], toolchain: Toolchain) -> list[Latency]:
    """Return what each command takes."""
    costs = toolchain.device
    cache: dict[tuple[int, str | None], Latency] = {}
    tables = {None: 0.0, "f4e2m1": costs.f4_table, "f8e4m3": costs.f8_table}
    found = []
    for command in commands:
        key = id(command.site), command.table
        if key not in cache:
            cache[key] = _latency(command.site, tables[command.table], toolchain)
        found.append(cache[key])
    return found


def _latency(site: Site, table: float, toolchain: Toolchain) -> Latency:
    costs = toolchain.device
    match site.statement:
        case Load() as load:
            return Latency(costs.load_fixed, _streamed(site, load, costs), costs.latency)
        case Store(source=source):
            fixed = costs.store_fixed + costs.store_part * source.n_parts
            return Latency(fixed, 0.0, costs.latency)
        case run:
            return Latency(_pass_cycles(site, run, toolchain) + table, 0.0, 0.0)


def _pass_cycles(site: Site, run: Pass, toolchain: Toolchain) -> float:
    costs = toolchain.device
    factors: dict[Unit, float] = {
        "lookup": costs.lookup_factor,
        "switch": costs.ring_factor,
        "reduce": costs.ring_factor,
    }
    work = unit_cycles(site, run, toolchain.rates)
    slowest = max(n * factors.get(unit, costs.work_factor) for unit, n in work.items())
    config = costs.switch_config if any(isinstance(s, Switch) for s in run.stages) else 0.0
    return costs.pass_fixed + slowest + config


def _streamed(site: Site, load: Load, costs: DeviceCosts) -> float:
    """Return the bytes at full rate that take as long as those of ``load``."""
    width = dict(costs.width_factors)[placement_of(load.outputs[0]).n_slices]
    return sum(
        t.n_bytes * min(t.n_copies, costs.max_copy_factor) / (run_rate(t.run_bytes, costs) * width)
        for t in transfers(site, load)
    )


def run_rate(run_bytes: int, costs: DeviceCosts) -> float:
    """Return the share of the full rate that runs of ``run_bytes`` reach."""
    table = costs.run_factors
    k = min(max(bisect_right(table, run_bytes, key=itemgetter(0)), 1), len(table) - 1)
    (lower, low), (upper, high) = table[k - 1 : k + 1]
    x = log2(run_bytes / lower) / log2(upper / lower)
    rate = low + (high - low) * min(max(x, 0.0), 1.0)
    return rate if run_bytes % costs.run_alignment == 0 else rate * costs.unaligned_factor
