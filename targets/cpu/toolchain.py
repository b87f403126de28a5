"""The fixed flags of the C compiler, and the machine's fingerprint."""

import os
import platform
import re
from pathlib import Path
from typing import Final

from targets.sandbox.compiler import compiler

FLAGS: Final = (
    "-O3",
    "-std=gnu11",
    "-g0",
    "-Wall",
    "-fPIC",
    "-ffp-contract=off",  # a compiler's own choice of fused operations would make results its own
    "-fno-stack-protector",  # a distribution's default that would call into its C library
)
"""Strict floating point; the baseline and every candidate get the same. FMA intrinsics work."""

PREPROCESS_FLAGS: Final = ("-E", "-U_FORTIFY_SOURCE")
LINK_FLAGS: Final = ("-shared", "-nostdlib", "-Wl,-z,noexecstack", "-Wl,-z,relro", "-Wl,-z,now")

_SIMD: Final = re.compile(r"(s?sse|avx|fma|f16c|bmi|gfni|amx|vaes|vpclmul|sha|popcnt).*")


def flags() -> tuple[str, ...]:
    """Return what every source is compiled with.

    Raises:
        TargetError: there is no compiler.
    """
    native = "-march=native" if platform.machine() == "x86_64" else "-mcpu=native"
    own = {
        "gcc": ("-fdiagnostics-color=never", "-fmax-errors=20"),
        "clang": ("-fno-color-diagnostics", "-ferror-limit=20"),
        "zig": ("-fno-color-diagnostics", "-ferror-limit=20", "-fno-sanitize=undefined"),
    }[compiler().family]
    return (*FLAGS, native, *own)


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's lines of /proc/cpuinfo; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def features() -> frozenset[str]:
    """Return the vector extensions of this processor, named as the kernel names them."""
    about = _cpuinfo()
    x86 = {flag for flag in about.get("flags", "").split() if _SIMD.fullmatch(flag)}
    return frozenset(x86) | frozenset(about.get("Features", "").split())


def fingerprint() -> dict[str, str]:
    """Return everything whose change makes artifacts or times incomparable.

    Raises:
        TargetError: there is no compiler.
    """
    cc, about = compiler(), _cpuinfo()
    arm = " ".join(about[key] for key in ("CPU implementer", "CPU part") if key in about)
    return {
        "compiler": f"{Path(cc.command[0]).name}: {cc.version}",
        "flags": " ".join((*flags(), *LINK_FLAGS)),
        "processor": about.get("model name") or arm or platform.machine(),
        "features": " ".join(sorted(features())),
        "kernel": platform.release(),
        "cores": str(len(os.sched_getaffinity(0))),
    }
