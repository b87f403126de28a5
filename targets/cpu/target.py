"""Kernels in C for the machine's own processor."""

from collections.abc import Sequence

from targets.cpu.baselines import baseline
from targets.cpu.bounds import bound_sources
from targets.cpu.build import build
from targets.cpu.canaries import canary_slow, canary_wrong
from targets.cpu.catalogue import CpuCatalogue
from targets.cpu.check import check
from targets.cpu.gate import normalize
from targets.cpu.header import task
from targets.cpu.measure import measure
from targets.cpu.probes import microbenchmarks
from targets.cpu.toolchain import features, fingerprint
from targets.gemma4.kernels import KERNELS, PRESETS, Kernel
from targets.gemma4.kernels import kernel as kernel_at
from targets.protocol import (
    BuildFailed,
    Built,
    Card,
    Catalogue,
    FixtureResult,
    Measured,
    MeasureFailed,
    Microbenchmark,
    Sources,
    TargetError,
)
from targets.sandbox.runner import isolation


class CpuTarget:
    """The three decode kernels at one preset; obeys `targets.protocol.Target` and `Probed`."""

    name = "cpu"
    shares_host = True

    def __init__(self, preset: str) -> None:
        if preset not in PRESETS:
            raise TargetError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
        self._preset = preset
        self.catalogue: Catalogue = CpuCatalogue(features())

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels it knows."""
        return KERNELS

    def presets(self) -> tuple[str, ...]:
        """Names of the sizes it knows."""
        return PRESETS

    def fingerprint(self) -> dict[str, str]:
        """Compiler, flags, processor, kernel release and cores.

        Raises:
            TargetError: no compiler here, or not Linux on a processor that it knows.
        """
        return fingerprint()

    def isolation(self) -> str:
        """Say what confines untrusted code on this machine.

        Raises:
            TargetError: nothing that suffices does.
        """
        return isolation()

    def _kernel(self, name: str) -> Kernel:
        return kernel_at(name, self._preset)

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        chosen = self._kernel(kernel)
        return Card(task(chosen), chosen.weight_bytes)

    def sources(self, kernel: str) -> Sources:
        """Return the baseline, both canaries and the load-only variants."""
        chosen, text = self._kernel(kernel), baseline(kernel)
        wrong, slow = canary_wrong(chosen, text), canary_slow(chosen, text)
        return Sources(text, wrong, slow, bound_sources(chosen))

    def microbenchmarks(self, kernel: str) -> tuple[Microbenchmark, ...]:
        """Return programs on a kernel's buffers that say what things cost."""
        return microbenchmarks(self._kernel(kernel))

    def normalize(self, source: str) -> str:
        """Return the source without comments and spacing."""
        return normalize(source)

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Build hostile source, in the sandbox."""
        return build(self._kernel(kernel), source)

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Run a hostile artifact on one fixture per seed; stop at the first failure."""
        return check(self._kernel(kernel), artifact, seeds)

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
        """Time arms in one sandboxed process, in the order of ``schedule``."""
        return measure(
            self._kernel(kernel),
            arms,
            schedule,
            group=group,
            launches=launches,
            checked=checked,
            seed=seed,
            limit_s=limit_s,
        )
