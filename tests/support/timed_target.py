"""The fake target on a virtual clock: its work takes about as long as that of a real one."""

from collections.abc import Sequence

from sim.clock import VirtualClock
from targets.protocol import (
    Ask,
    BuildFailed,
    Built,
    Clock,
    FixtureResult,
    Measured,
    MeasureFailed,
)
from tests.support.fake_target import FakeCatalogue, FakeTarget

REPLY_S = 90.0
BUILD_S = 20.0
CHECK_S = 5.0
LAUNCH_S = 1.5


class TimedCatalogue(FakeCatalogue):
    """Thinks before it answers."""

    def __init__(self, target: "TimedTarget") -> None:
        self._target = target

    def reply(self, ask: Ask) -> str:
        """As the fake one."""
        self._target.clock.spend(REPLY_S)
        return super().reply(ask)


class TimedTarget(FakeTarget):
    """A fake target that spends virtual time."""

    def __init__(self, n_updates: int = 0) -> None:
        super().__init__()
        self.clock: Clock = VirtualClock()
        self.n_updates = n_updates
        self.catalogue = TimedCatalogue(self)

    def updated(self, n_updates: int) -> "TimedTarget":
        """As often as one likes."""
        later = TimedTarget(n_updates)
        later.clock = self.clock
        return later

    def fingerprint(self) -> dict[str, str]:
        """Versions without an end."""
        return {"compiler": f"fake 1.{self.n_updates}"}

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """As the fake one."""
        self.clock.spend(BUILD_S)
        return super().build(kernel, source)

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """As the fake one."""
        self.clock.spend(CHECK_S * len(seeds))
        return super().check(kernel, artifact, seeds)

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
        """As the fake one."""
        self.clock.spend(LAUNCH_S * launches * len(schedule))
        return super().measure(
            kernel, arms, schedule, group=group, launches=launches, checked=checked, seed=seed,
            limit_s=limit_s,
        )  # fmt: skip
