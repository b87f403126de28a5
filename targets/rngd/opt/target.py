"""RNGD in the vendor's Rust language: built by its toolchain, timed by its Arena service."""

import shutil
from collections.abc import Sequence
from typing import Final

from targets.gemma4.kernels import KERNELS
from targets.gemma4.kernels import kernel as gemma_kernel
from targets.gemma4.mathematics import FORMULAS
from targets.protocol import (
    REVIEW,
    Ask,
    BuildFailed,
    Built,
    Card,
    Catalogue,
    Cost,
    FixtureResult,
    Measured,
    MeasureFailed,
    Sources,
    TargetError,
)
from targets.rngd.opt.arena import PROGRAM, Arena
from targets.rngd.opt.artifact import unpack
from targets.rngd.opt.build import build, device_file
from targets.rngd.opt.check import check
from targets.rngd.opt.jobs import Order, measure
from targets.rngd.opt.text import normalize
from targets.rngd.opt.toolchain import LIBRARY, NIGHTLY, PLUGIN, VERSION, digest, project, toolchain

PRESET: Final = f"opt-{VERSION}"
_OWN: Final = ("wrong", "slow", "loads")


class NoMoves:
    """A catalogue that knows no move: nothing of this language can be shipped."""

    def reply(self, ask: Ask) -> str:
        """Say so."""
        if ask.task == "review":
            return REVIEW
        return "<nothing>the catalogue has no moves in this language: name a model</nothing>"


class OptTarget:
    """Decode kernels in a project of the user's; obeys `Target` and `CostModel`."""

    name = "rngd"
    shares_host = False

    def __init__(self, presets: Sequence[str], arena: Arena | None = None) -> None:
        """Take the presets of the whole target, and the service's client."""
        self._presets = tuple(presets)
        self._arena = arena or Arena()
        self.catalogue: Catalogue = NoMoves()

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels it knows."""
        return KERNELS

    def presets(self) -> tuple[str, ...]:
        """Those of the target: this language's is one of them."""
        return self._presets

    def fingerprint(self) -> dict[str, str]:
        """Versions, the project's content, and what the readings are of.

        Raises:
            TargetError: toolchain or project are missing or of another version.
        """
        found = toolchain()
        service = f"RNGD, device counter, through {PROGRAM}"
        return {
            "compiler": f"{PLUGIN} {VERSION}",
            "language": f"{LIBRARY} {VERSION}, {NIGHTLY}",
            "project": digest(found.project),
            "chip": "RNGD",
            "device": service if shutil.which(PROGRAM) else f"none: {PROGRAM} is not on the path",
        }

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        facts = gemma_kernel(kernel, "full")
        text = _TASK.format(
            name=kernel,
            file=device_file(kernel),
            formulas=FORMULAS[kernel],
            sizes=", ".join(f"{axis} = {size}" for axis, size in facts.dims.items()),
            library=f"{LIBRARY} {VERSION}",
            atol=facts.atol,
            rtol=facts.rtol,
            weight_bytes=facts.weight_bytes,
        )
        return Card(text, facts.weight_bytes)

    def sources(self, kernel: str) -> Sources:
        """Return the project's own device file, its canaries, and its load-only variant.

        Raises:
            TargetError: the project lacks one; the text says which.
        """
        baseline = _text(device_file(kernel))
        wrong, slow, loads = (_text(f"kernelwright/{kernel}/{own}.rs") for own in _OWN)
        return Sources(baseline, wrong, slow, {"loads": loads})

    def normalize(self, source: str) -> str:
        """Return the source without comments and spacing."""
        return normalize(source)

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Build hostile source in a copy of the project, in the sandbox."""
        return build(toolchain(), kernel, source)

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Run the project's test with an artifact on the processor, in the sandbox.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        return check(unpack(kernel, artifact), seeds)

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """Return the static schedule that the artifact was built with.

        Raises:
            ValueError: this is no artifact of this kernel.
        """
        unpacked = unpack(kernel, artifact)
        return Cost(unpacked.cycles, unpacked.schedule)

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
        """Time arms in one job of the service, in the order of ``schedule``.

        Raises:
            ValueError: an arm is no artifact of this kernel.
            TargetError: the service's program is missing.
        """
        binaries = [unpack(kernel, arm).binary for arm in arms]
        order = Order(kernel, binaries, schedule, launches, checked, seed, limit_s)
        return measure(order, self._arena)


def _text(name: str) -> str:
    path = project() / name
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as e:
        raise TargetError(f"the project has no readable {path}; see docs/targets/rngd.md") from e


_TASK: Final = """\
Kernel {name}: write one Rust file, {file} of a project for FuriosaAI's RNGD, with the
library {library}. It replaces the project's own file: keep the names and the signature
of the public device function there; the present best version shows them.

Mathematics (products of two vectors are element by element):
{formulas}
rmsnorm(t) = t / sqrt(mean(t*t) + 1e-6), the mean over all elements of t.
Sizes: {sizes}.

Correct means: every output is finite and |output - exact| <= {atol} + {rtol} * |exact|, by the
project's own test, on inputs of several seeds.

Fast means: few cycles of the device's counter. Every launch must move {weight_bytes} bytes of
weights and scales from DRAM.

Rules: the file holds device functions and their constants. It is no host code: no unsafe, extern,
std, macros of its own, printing, attributes of the crate, or further modules.
"""
