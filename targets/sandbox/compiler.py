"""The C compiler of this machine: it builds the sandbox, and the kernels of the `cpu` target."""

import importlib.util
import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from targets.protocol import TargetError

MACHINES: Final = ("x86_64", "aarch64")
_SYSTEM_ROOTS: Final = ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc/cpuinfo")


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was found on this machine."""

    command: tuple[str, ...]
    family: Literal["gcc", "clang", "zig"]
    version: str
    """First line of what it says of itself."""
    roots: tuple[str, ...]
    """Files and folders that it must read."""


def compiler() -> Compiler:
    """Find gcc or clang on the search path, else the compiler in the ``ziglang`` wheel.

    It is looked for each time: an update may replace it while a campaign runs.

    Raises:
        TargetError: not Linux on x86-64 or aarch64, or there is no compiler.
    """
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        here = f"{platform.system()} on {platform.machine()}"
        raise TargetError(f"this needs Linux on {' or '.join(MACHINES)}; here is {here}")
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
    try:
        said = subprocess.run(
            (program, option), capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise TargetError(f"the compiler {program} does not run ({e}); install another") from e
    return said.stdout.splitlines()[0].strip() if said.stdout else ""
