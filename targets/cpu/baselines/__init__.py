"""The baselines: plain C of the kind that an engineer writes first, one file per kernel."""

from importlib.resources import files

from targets.gemma4.kernels import KERNELS
from targets.protocol import TargetError


def baseline(name: str) -> str:
    """Return the C source of a kernel's baseline.

    Raises:
        TargetError: no such kernel; the text lists the known ones.
    """
    if name not in KERNELS:
        raise TargetError(f"unknown kernel {name!r}; use one of {', '.join(KERNELS)}")
    return files("targets.cpu.baselines").joinpath(f"{name}.c").read_text(encoding="utf-8")
