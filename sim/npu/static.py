"""What the compiler believes that a command takes."""

from collections.abc import Sequence

from sim.npu.expand import Command, Site
from sim.npu.program import Load, Store, Switch
from sim.npu.toolchain import Toolchain
from sim.npu.work import transfers, unit_cycles


def durations(commands: Sequence[Command], toolchain: Toolchain) -> list[float]:
    """Return the static cycles of each command."""
    costs = toolchain.static
    sites = {id(c.site): c.site for c in commands}
    fixed = {key: _site_cycles(site, toolchain) for key, site in sites.items()}
    table = {None: 0.0, "f4e2m1": costs.f4_table, "f8e4m3": costs.f8_table}
    return [fixed[id(c.site)] + table[c.table] + (costs.sync if c.synced else 0) for c in commands]


def _site_cycles(site: Site, toolchain: Toolchain) -> float:
    costs = toolchain.static
    match site.statement:
        case Load() as load:
            moved = sum(
                t.n_bytes * min(t.n_copies, costs.max_copy_factor) / costs.load_rate
                + costs.segment * t.n_bytes / t.run_bytes
                for t in transfers(site, load)
            )
            return costs.load_fixed + moved
        case Store(source=source):
            return costs.store_fixed + costs.store_part * source.n_parts
        case run:
            config = costs.switch_config if any(isinstance(s, Switch) for s in run.stages) else 0
            return costs.pass_fixed + max(unit_cycles(site, run, toolchain.rates).values()) + config
