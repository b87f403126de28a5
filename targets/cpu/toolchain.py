"""The C compiler of this machine, its fixed flags, and the machine's fingerprint."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from targets.protocol import TargetError

MACHINES: Final = ("x86_64", "aarch64")

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

_SYSTEM_ROOTS: Final = ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc/cpuinfo")
_SIMD: Final = re.compile(r"(s?sse|avx|fma|f16c|bmi|gfni|amx|vaes|vpclmul|sha|popcnt).*")


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was found on this machine."""

    command: tuple[str, ...]
    family: Literal["gcc", "clang", "zig"]
    version: str
    """First line of what it says of itself."""
    roots: tuple[str, ...]
    """Files and folders that it must read."""

    @property
    def flags(self) -> tuple[str, ...]:
        """What every source is compiled with."""
        native = "-march=native" if platform.machine() == "x86_64" else "-mcpu=native"
        own = {
            "gcc": ("-fdiagnostics-color=never", "-fmax-errors=20"),
            "clang": ("-fno-color-diagnostics", "-ferror-limit=20"),
            "zig": ("-fno-color-diagnostics", "-ferror-limit=20", "-fno-sanitize=undefined"),
        }[self.family]
        return (*FLAGS, native, *own)


def compiler() -> Compiler:
    """Find gcc or clang on the search path, else the compiler in the ``ziglang`` wheel.

    It is looked for each time: an update may replace it while a campaign runs.

    Raises:
        TargetError: not Linux on x86-64 or aarch64, or there is no compiler.
    """
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        here = f"{platform.system()} on {platform.machine()}"
        raise TargetError(f"the cpu target needs Linux on {' or '.join(MACHINES)}; this is {here}")
    if found := shutil.which("gcc"):
        return _system_compiler("gcc", found)
    if found := shutil.which("clang"):
        return _system_compiler("clang", found)
    if found := _zig():
        version = _say(found, "version")
        roots = (*_SYSTEM_ROOTS, str(Path(found).parent))
        return Compiler((found, "cc"), "zig", f"zig {version}", roots)
    raise TargetError(
        "no C compiler found: install gcc or clang, or `pip install 'kernelwright[compiler]'`"
    )


def _system_compiler(family: Literal["gcc", "clang"], found: str) -> Compiler:
    path = Path(found).resolve()
    prefix = path.parent.parent
    if prefix in (Path.home(), Path("/")):
        prefix = path.parent
    return Compiler((found,), family, _say(found, "--version"), (*_SYSTEM_ROOTS, str(prefix)))


def _zig() -> str | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    return shutil.which("zig", path=str(Path(spec.origin).parent))


def _say(program: str, option: str) -> str:
    about = Path(program).stat()
    return _say_once(program, option, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=8)
def _say_once(program: str, option: str, *_file: int) -> str:
    """What a program says of itself, asked again when its file is another one."""
    command = (program, option)
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as e:
        raise TargetError(f"the compiler {command[0]} does not run ({e}); install another") from e
    return said.stdout.splitlines()[0].strip() if said.stdout else ""


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
        "flags": " ".join((*cc.flags, *LINK_FLAGS)),
        "processor": about.get("model name") or arm or platform.machine(),
        "features": " ".join(sorted(features())),
        "kernel": platform.release(),
        "cores": str(len(os.sched_getaffinity(0))),
    }
