"""RNGD: kernels in the vendor's language, through the vendor's toolchain, called by path."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from targets.noisy import Order, measure
from targets.protocol import (
    BuildFailed,
    Built,
    Card,
    Catalogue,
    Cost,
    Document,
    FixtureResult,
    Measured,
    MeasureFailed,
    Sources,
    TargetError,
)
from targets.rngd.artifact import unpack
from targets.rngd.build import build
from targets.rngd.card import card
from targets.rngd.catalogue import RngdCatalogue
from targets.rngd.check import check
from targets.rngd.compiling import compile_fully
from targets.rngd.costing import cost
from targets.rngd.device import (
    CLOCK_HZ,
    NO_COST,
    UNLIMITED_S,
    Now,
    description,
    launch_s,
    noise_of,
)
from targets.rngd.documents import documents
from targets.rngd.environment import (
    COMPILER,
    LANGUAGE,
    RUNTIME,
    Environment,
    environment,
    evaluator,
    runtime,
)
from targets.rngd.evaluating import CHIP
from targets.rngd.kernels import TASKS
from targets.rngd.normal import normalize
from targets.rngd.opt.target import PRESET as OPT
from targets.rngd.opt.target import OptTarget
from targets.rngd.sources import sources

NEWEST: Final = "full"
"""The preset of the newest toolchain that is found."""
VENDOR: Final = "+vendor-kernels"
"""At the end of a preset: agents' code may read the model kernels that the vendor ships."""
VERSIONS: Final = ("2026.4.0", "2026.3.0")
PRESETS: Final = (NEWEST, *VERSIONS, f"{NEWEST}{VENDOR}", OPT)


def rngd_target(preset: str) -> "RngdTarget | OptTarget":
    """Return the target of a preset; one whose toolchain can tell costs says them.

    Raises:
        TargetError: no such preset; the text lists those there are.
    """
    if preset == OPT:
        return OptTarget(PRESETS)
    version = preset.removesuffix(VENDOR)
    if version not in (NEWEST, *VERSIONS):
        raise TargetError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
    try:
        evaluates = environment(None if version == NEWEST else version).evaluates
    except TargetError:  # it says so when it is used
        evaluates = False
    return EvaluatingRngd(preset) if evaluates else RngdTarget(preset)


class RngdTarget:
    """Decode kernels at full size, with one version of the toolchain; obeys `Target`."""

    name = "rngd"
    shares_host = False

    def __init__(self, preset: str) -> None:
        version = preset.removesuffix(VENDOR)
        self._version = None if version == NEWEST else version
        self._vendor_kernels = preset.endswith(VENDOR)
        self.catalogue: Catalogue = RngdCatalogue()

    def _language(self) -> Environment:
        return environment(self._version)

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels it knows."""
        return tuple(TASKS)

    def presets(self) -> tuple[str, ...]:
        """Versions of both toolchains; with the vendor's own kernels in sight, or without."""
        return PRESETS

    def fingerprint(self) -> dict[str, str]:
        """Versions of the vendor's packages, the chip, and what stands for the device.

        Raises:
            TargetError: the packages are not here; the text says how to get them.
        """
        language, run = self._language(), runtime()
        return {
            "compiler": f"{COMPILER} {language.versions[COMPILER]}",
            "language": f"{LANGUAGE} {language.versions[LANGUAGE]}",
            "runtime": f"{RUNTIME} {run.versions[RUNTIME] if run else 'missing'}",
            "chip": CHIP,
            "device": description(evaluator()),
            "vendor kernels": "readable" if self._vendor_kernels else "hidden",
        }

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        return card(TASKS[kernel])

    def sources(self, kernel: str) -> Sources:
        """Return the baseline, both canaries and the load-only variants."""
        return sources(TASKS[kernel])

    def documents(self) -> tuple[Document, ...]:
        """Return what the installed language says of itself.

        Raises:
            TargetError: the packages are not here; the text says how to get them.
        """
        return documents(self._language())

    def normalize(self, source: str) -> str:
        """Return the source without comments and spacing."""
        return normalize(source)

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Trace hostile source in the sandbox, judge its text, and have it evaluated."""
        vendor = self._vendor_kernels
        return build(self._language(), TASKS[kernel], source, vendor_kernels=vendor)

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Run an artifact's text on the processor, on one fixture per seed.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        return check(
            runtime() or self._language(), TASKS[kernel], unpack(kernel, artifact).text, seeds
        )

    def compile_fully(self, kernel: str, artifact: bytes) -> Built | BuildFailed:
        """Compile an artifact to the program that the chip runs: minutes, for a final winner.

        Raises:
            ValueError: this is no artifact of this kernel.
            TargetError: the cross assembler is missing; the text says how to get it.
        """
        return compile_fully(self._language(), unpack(kernel, artifact).text)

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
        """Time arms on the simulated device, in the order of ``schedule``.

        No launch takes time of the clock, so ``limit_s`` is never reached: what runs here, the
        compiler and the check, has limits of its own.

        Raises:
            ValueError: an arm is no artifact of this kernel.
        """
        model = evaluator()
        times_s = [launch_s(model, kernel, arm) for arm in arms]
        if None in times_s:
            return MeasureFailed(times_s.index(None) if model else None, NO_COST)
        order = Order(
            noise_of(kernel),
            arms,
            [t for t in times_s if t is not None],
            CLOCK_HZ,
            schedule,
            group,
            launches,
            checked,
            seed,
            UNLIMITED_S,
            lambda _, arm, seeds: _checked(self, kernel, arm, tuple(seeds)),
        )
        return measure(order, "real", Now())


class EvaluatingRngd(RngdTarget):
    """The same, where the toolchain can say what a kernel costs; obeys `CostModel`."""

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """Return the vendor's static cost.

        Raises:
            ValueError: this is no artifact of this kernel, or one of another toolchain.
        """
        return cost(self._language(), unpack(kernel, artifact).text)


def _checked(
    target: RngdTarget, kernel: str, artifact: bytes, seeds: tuple[int, ...]
) -> tuple[FixtureResult, ...]:
    """Check an arm once: every job gives it the same inputs, and it computes the same again."""
    results = _kept(target, kernel, artifact, seeds)
    if not all(result.passed for result in results):
        _kept.cache_clear()  # it may have failed for want of time
    return results


@lru_cache(maxsize=64)
def _kept(
    target: RngdTarget, kernel: str, artifact: bytes, seeds: tuple[int, ...]
) -> tuple[FixtureResult, ...]:
    return target.check(kernel, artifact, seeds)
