"""A target as a simulated world has it: on the world's clock, with hangs and updates."""

import copy
from collections.abc import Callable, Sequence

from sim.clock import VirtualClock
from targets.protocol import Measured, MeasureFailed, Target, VirtualTarget


def rigged(
    target: VirtualTarget, clock: VirtualClock, hangs: Callable[[], bool], n_updates: int
) -> Target:
    """A copy of ``target`` whose device jobs hang when told, after updates of its toolchain."""
    target.clock = clock
    world = target.updated(n_updates)
    rig = copy.copy(world)

    def measure(
        kernel: str,
        arms: Sequence[bytes],
        schedule: Sequence[int],
        *,
        group: int,
        launches: int,
        checked: Sequence[bool],
        seed: int,
        limit_s: float,
    ) -> Measured | MeasureFailed:
        if hangs():
            clock.spend(limit_s)
            return MeasureFailed(None, f"the job hung and was killed after {limit_s:.0f} s")
        return world.measure(
            kernel, arms, schedule, group=group, launches=launches, checked=checked, seed=seed,
            limit_s=limit_s,
        )  # fmt: skip

    rig.measure = measure  # type: ignore[method-assign]
    return rig
