"""The simulated NPU: kernels in a language of its own, on a device whose truth is known."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sim.clock import VirtualClock
from sim.npu.kernels import SIGNATURES
from sim.npu.printing import normalize
from sim.npu.toolchain import TOOLCHAINS, V1_0, Toolchain
from targets.noisy import Noise, Order, measure
from targets.protocol import (
    Ask,
    BuildFailed,
    Built,
    Card,
    Catalogue,
    Clock,
    Cost,
    Document,
    FixtureResult,
    Measured,
    MeasureFailed,
    Microbenchmark,
    Sources,
    TargetError,
)
from targets.sim.artifact import CLOCK_HZ, launch_s, static_cost
from targets.sim.build import build
from targets.sim.card import card, manual
from targets.sim.catalogue import SimCatalogue
from targets.sim.check import check
from targets.sim.durations import BUILD_S, CHECK_S, LOADS_BUILD_S, REFUSED_S, thought_s
from targets.sim.probes import microbenchmarks, programs
from targets.sim.sources import sources


class World(NamedTuple):
    """What a preset stands for."""

    toolchain: Toolchain
    """At the begin."""
    noise: Noise


PRESETS: Final[Mapping[str, World]] = {
    "full": World(V1_0, "real"),
    **{version: World(toolchain, "real") for version, toolchain in TOOLCHAINS.items()},
    "quiet": World(V1_0, "quiet"),
}
"""All at full size: ``full`` is what a campaign gets that names none."""


class SimTarget:
    """The three decode kernels; obeys `VirtualTarget`, `CostModel` and `TruthKnown`.

    Attributes:
        clock: of its world; one of its own until whoever drives the run sets it.
    """

    name = "sim"
    shares_host = False

    def __init__(self, preset: str, n_updates: int = 0) -> None:
        """Make the target of a preset after updates of its toolchain.

        Raises:
            TargetError: no such preset; the text lists those there are.
        """
        if preset not in PRESETS:
            raise TargetError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
        self._preset = preset
        self._toolchain = _later(PRESETS[preset].toolchain, n_updates)
        self._noise = PRESETS[preset].noise
        self.clock: Clock = VirtualClock()
        self.catalogue: Catalogue = _Thoughtful(self, SimCatalogue(self._toolchain))

    def updated(self, n_updates: int) -> "SimTarget":
        """Return it with the toolchain so many versions later, the last one at most."""
        later = SimTarget(self._preset, n_updates)
        later.clock = self.clock
        return later

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels it knows."""
        return tuple(SIGNATURES)

    def presets(self) -> tuple[str, ...]:
        """Versions of the toolchain on a device as noisy as a real one, and a quiet device."""
        return tuple(PRESETS)

    def fingerprint(self) -> dict[str, str]:
        """The toolchain's version and the device's noise."""
        return {"compiler": f"npu {self._toolchain.version}", "noise": self._noise}

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        return card(kernel)

    def sources(self, kernel: str) -> Sources:
        """Return the baseline, both canaries and the load-only variants."""
        return sources(kernel)

    def microbenchmarks(self, kernel: str) -> tuple[Microbenchmark, ...]:
        """Return small programs that tell what loads, passes, tables and engines cost."""
        return microbenchmarks(kernel)

    def documents(self) -> tuple[Document, ...]:
        """Return the manual of the NPU and its language."""
        return (Document("The NPU and its language", manual()),)

    def normalize(self, source: str) -> str:
        """Return the source without comments and spacing."""
        return normalize(source)

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Compile hostile source; only the target's own programs may store nothing."""
        signature = SIGNATURES[kernel]
        loads_only = source in sources(kernel).bounds.values() or source in programs(kernel)
        built = build(source, signature.load_only() if loads_only else signature, self._toolchain)
        if isinstance(built, BuildFailed):
            self.clock.spend(REFUSED_S)
        else:
            self.clock.spend(LOADS_BUILD_S if loads_only else BUILD_S)
        return built

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Interpret an artifact on one fixture per seed; stop at the first failure.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        results = check(kernel, artifact, seeds)
        self.clock.spend(CHECK_S * len(results))
        return results

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
        """Time arms in one job, in the order of ``schedule``.

        Raises:
            ValueError: an arm is no artifact of this kernel.
        """
        times_s = [self.truth(kernel, arm) for arm in arms]
        order = Order(
            kernel,
            arms,
            times_s,
            CLOCK_HZ,
            schedule,
            group,
            launches,
            checked,
            seed,
            limit_s,
            check,
        )
        return measure(order, self._noise, self.clock)

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """Return what the compiler believes; its schedule came with the build and takes no time.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        return static_cost(kernel, artifact)

    def truth(self, kernel: str, artifact: bytes) -> float:
        """Return the seconds of a launch without noise, infinite if it hangs.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        return launch_s(kernel, artifact, self._toolchain)

    def true_bound(self, kernel: str) -> float:
        """Return the seconds of the fastest load-only variant without noise."""
        signature = SIGNATURES[kernel].load_only()
        built = [build(s, signature, self._toolchain) for s in sources(kernel).bounds.values()]
        return min(self.truth(kernel, b.artifact) for b in built if isinstance(b, Built))


class _Thoughtful:
    """A catalogue that takes its time, as a model would."""

    def __init__(self, target: SimTarget, catalogue: Catalogue) -> None:
        self._target, self._catalogue = target, catalogue

    def reply(self, ask: Ask) -> str:
        """Answer as the catalogue does."""
        self._target.clock.spend(
            thought_s(ask.kernel, ask.task, ask.incumbent_source, len(ask.tried), ask.seed)
        )
        return self._catalogue.reply(ask)


def _later(toolchain: Toolchain, n_updates: int) -> Toolchain:
    versions = list(TOOLCHAINS.values())
    return versions[min(versions.index(toolchain) + n_updates, len(versions) - 1)]
