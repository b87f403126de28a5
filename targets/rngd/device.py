"""The device where there is no chip: the vendor's static cost under the noise of the real one."""

import time
from math import inf
from pathlib import Path
from typing import Final

from targets.rngd.artifact import unpack
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import COMPILER, Environment
from targets.rngd.evaluating import evaluate

CLOCK_HZ: Final = 1e9
"""Nominal, of the cycles that the static cost counts."""
UNLIMITED_S: Final = inf
"""A limit on the clock that no simulated job reaches: its launches take none of that time."""
NO_COST: Final = "no toolchain here can say what this kernel costs, and there is no chip"
_DEVICES: Final = Path("/dev/rngd")
"""Where the vendor's driver puts its chips."""
_VARIANT: Final = "_mxfp4"


def description(evaluator: Environment | None) -> str:
    """Say what device readings are of, for fingerprints and pages."""
    if evaluator is None:
        return "none: there is no chip, and no cost model to simulate one with"
    version = evaluator.versions[COMPILER]
    return f"simulated device: vendor's static cost ({COMPILER} {version}) + noise profile"


def chip() -> str:
    """Return the device file of a chip of this machine, "" without one."""
    return next((str(path) for path in sorted(_DEVICES.glob("npu*"))), "")


def noise_of(kernel: str) -> str:
    """Return the kernel of the noise profile that another format of its weights is as noisy as."""
    return kernel.removesuffix(_VARIANT)


def launch_s(evaluator: Environment | None, kernel: str, artifact: bytes) -> float | None:
    """Return the seconds of a launch without noise, None if nothing here can tell.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    unpacked = unpack(kernel, artifact)
    if evaluator is None:
        return None
    evaluation = evaluate(evaluator, unpacked.text)
    return None if isinstance(evaluation, Diagnostic) else evaluation.cycles / CLOCK_HZ


class Now:
    """The machine's clock, on which a simulated launch takes no time.

    Device time of this target is thus the time that a job took this machine: to schedule its arms,
    and to check what they compute.
    """

    def __call__(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def spend(self, seconds: float) -> None:
        """Do nothing."""
