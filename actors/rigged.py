"""A target as a simulated world has it: on the world's clock, with hangs and updates."""

from collections.abc import Callable, Sequence
from typing import Any

from sim.clock import VirtualClock
from targets.protocol import Measured, MeasureFailed, VirtualTarget


class Rigged:
    """A target whose device jobs hang when told, and whose toolchain is updated in mid-run.

    It is what ``target`` is in everything else.

    Args:
        target: before all updates.
        clock: of the world.
        hangs: whether the next device job does.
        n_updates: of the toolchain so far.
    """

    def __init__(
        self, target: VirtualTarget, clock: VirtualClock, hangs: Callable[[], bool], n_updates: int
    ) -> None:
        target.clock = clock
        self._target, self._clock, self._hangs = target, clock, hangs
        self.update(n_updates)

    def update(self, n_updates: int) -> None:
        """From here on the toolchain is so many versions later than at the begin."""
        self._now = self._target.updated(n_updates)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name)

    def measure(
        self,
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
        """Time arms as the target does, or hang until the job is killed."""
        if self._hangs():
            self._clock.spend(limit_s)
            return MeasureFailed(None, f"the job hung and was killed after {limit_s:.0f} s")
        return self._now.measure(
            kernel, arms, schedule, group=group, launches=launches, checked=checked, seed=seed,
            limit_s=limit_s,
        )  # fmt: skip
