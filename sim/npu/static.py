"""What the compiler believes that a command takes, in static cycles."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.npu.expand import Command
from sim.npu.program import Load, Pass, Store, Switch
from sim.npu.toolchain import StaticCosts, Toolchain
from sim.npu.work import transfers, unit_cycles


@dataclass(frozen=True)
class StaticCost:
    """Of a command."""

    fixed: float
    busy: float
    """What depends on the size; of a pass, its slowest unit."""
    useful: float
    """How much of `busy` remained if every byte were moved once, in one piece, and nothing else
    took longer than fetching."""

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.fixed + self.busy


def static_costs(commands: Sequence[Command], toolchain: Toolchain) -> list[StaticCost]:
    """Return the cost of each command."""
    cache: dict[tuple[int, str | None, bool], StaticCost] = {}
    found = []
    for command in commands:
        key = id(command.site), command.table, bool(command.synced)
        if key not in cache:
            cache[key] = _cost(command, toolchain)
        found.append(cache[key])
    return found


def _cost(command: Command, toolchain: Toolchain) -> StaticCost:
    costs = toolchain.static
    match command.site.statement:
        case Load() as load:
            return _load_cost(command, load, costs)
        case Store(source=source):
            parts = costs.store_part * source.n_parts
            return StaticCost(costs.store_fixed, parts, parts)
        case Pass() as run:
            tables = {None: 0.0, "f4e2m1": costs.f4_table, "f8e4m3": costs.f8_table}
            switches = any(isinstance(s, Switch) for s in run.stages)
            fixed = costs.pass_fixed + tables[command.table] + costs.switch_config * switches
            units = unit_cycles(command.site, run, toolchain.rates)
            return StaticCost(fixed, max(units.values()), units["fetch"])


def _load_cost(command: Command, load: Load, costs: StaticCosts) -> StaticCost:
    moved = transfers(command.site, load)
    busy = sum(
        t.n_bytes * min(t.n_copies, costs.max_copy_factor) / costs.load_rate
        + costs.segment * t.n_bytes / t.run_bytes
        for t in moved
    )
    useful = sum(t.n_bytes / t.n_copies for t in moved) / costs.load_rate
    return StaticCost(costs.load_fixed + costs.sync * bool(command.synced), busy, useful)
