"""Where the vendor's packages are: virtual environments that are called by path.

Nothing of them is imported into this process, so several versions can stand side by side.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from targets.protocol import TargetError
from targets.sandbox.confined import Reads

VARIABLE: Final = "KERNELWRIGHT_RNGD"
"""Environment variable with folders of virtual environments, separated as a search path is."""
LANGUAGE: Final = "furiosa-kernels"
COMPILER: Final = "furiosa-tcc"
RUNTIME: Final = "furiosa-torch"
INSTALL: Final = "pip install 'kernelwright[rngd]'"
INSTALL_RUNTIME: Final = "pip install 'kernelwright[rngd-check]'"
_FIRST_WITH_EVALUATOR: Final = (2026, 4)
_SYSTEM: Final = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache")
_ASK: Final = """
import json, sys, sysconfig
from importlib.metadata import PackageNotFoundError, version
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = version(name)
    except PackageNotFoundError:
        pass
paths = {name: sysconfig.get_path(name) for name in ("stdlib", "purelib", "scripts")}
print(json.dumps([versions, paths, sys.prefix, sys._base_executable]))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has the language and the compiler."""

    python: Path
    tcc: Path
    versions: Mapping[str, str]
    """Of the vendor's packages, by their names on the index."""
    site: Path
    """Where its packages are."""
    interpreter: tuple[str, ...]
    """Files and folders of the interpreter itself."""

    @property
    def version(self) -> str:
        """The language's version, which the environment goes by."""
        return self.versions[LANGUAGE]

    @property
    def evaluates(self) -> bool:
        """Whether the compiler can say what a kernel costs."""
        return numbers(self.versions[COMPILER])[:2] >= _FIRST_WITH_EVALUATOR

    @property
    def functional(self) -> bool:
        """Whether kernels can be run on the processor."""
        return RUNTIME in self.versions

    def for_python(self, *, vendor_kernels: bool = False) -> Reads:
        """Return what a confined process of its interpreter sees.

        Args:
            vendor_kernels: whether the model kernels that the vendor ships are among it.
        """
        hidden = () if vendor_kernels else (self.site / "furiosa" / "kernels",)
        return without((*_SYSTEM, *self.interpreter, str(self.site)), hidden)

    def for_compiler(self) -> Reads:
        """Return what the confined compiler sees."""
        return Reads((*_SYSTEM, "/proc/cpuinfo", str(self.tcc)))


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, to compare by."""
    found = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        found.append(int(part))
    return tuple(found)


def without(roots: Iterable[str], hidden: Iterable[Path]) -> Reads:
    """Return ``roots`` less what is ``hidden`` below them.

    A folder on the way to something hidden is listed, and everything else in it may be read.
    """
    read: list[str] = []
    listed: list[str] = []
    secrets = [path.resolve() for path in hidden if path.exists()]
    waiting = [Path(root) for root in roots]
    while waiting:
        path = waiting.pop(0)
        resolved = path.resolve()
        if resolved in secrets:
            continue
        if path.is_dir() and any(secret.is_relative_to(resolved) for secret in secrets):
            listed.append(str(path))
            waiting += sorted(path.iterdir())
        else:
            read.append(str(path))
    return Reads(tuple(read), tuple(listed))


def environments() -> tuple[Environment, ...]:
    """Return the environments with the vendor's language and compiler, newest first.

    Looked at are those of `VARIABLE`, then the running interpreter's own.
    """
    # The machine's answer, like the search path's: where programs are is no choice of a run's.
    named = os.environ.get(VARIABLE, "").split(os.pathsep)  # noqa: TID251
    found = [_ask(Path(folder).absolute() / "bin" / "python") for folder in named if folder]
    found.append(_ask(Path(sys.executable)))
    complete = [each for each in found if each is not None]
    return tuple(sorted(complete, key=lambda each: numbers(each.version), reverse=True))


def environment(version: str | None = None) -> Environment:
    """Return the newest environment, or the first of a ``version``.

    One that can also run kernels comes before one of the same version that cannot.

    Raises:
        TargetError: not x86-64 Linux, or there is none; the text says how to get one.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        here = f"{platform.system()} on {platform.machine()}"
        raise TargetError(f"RNGD's compiler runs on x86-64 Linux only; this is {here}")
    every = environments()
    if not every:
        raise TargetError(
            f"RNGD's language and compiler ({LANGUAGE}, {COMPILER}) are not installed: "
            f"`{INSTALL}`, or name an environment that has them in {VARIABLE}"
        )
    fitting = [each for each in every if version in (None, each.version)]
    if not fitting:
        there = ", ".join(sorted({each.version for each in every}))
        raise TargetError(
            f"no environment has {LANGUAGE} {version} (there is {there}): "
            f"install `{LANGUAGE}=={version} {COMPILER}=={version}` in one, named in {VARIABLE}"
        )
    newest = fitting[0].version
    return next((e for e in fitting if e.functional and e.version == newest), fitting[0])


def evaluator() -> Environment | None:
    """Return the newest environment whose compiler says what kernels cost, None without one."""
    return next((each for each in environments() if each.evaluates), None)


def runtime() -> Environment | None:
    """Return the newest environment that can run kernels on the processor, None without one."""
    return next((each for each in environments() if each.functional), None)


def _ask(python: Path) -> Environment | None:
    """Return the environment of an interpreter, None if the vendor's packages are not in it."""
    sites = python.parent.parent.glob("lib/python*/site-packages")
    return _ask_once(python, *sorted(site.stat().st_mtime_ns for site in sites))


def _unfit(python: Path, why: str | None) -> TargetError:
    return TargetError(f"{VARIABLE}: {python} does not run ({why})")


@lru_cache(maxsize=64)
def _ask_once(python: Path, *_sites: int) -> Environment | None:
    """Ask an interpreter, and again when something was installed beside it."""
    try:
        said = subprocess.run(
            (python, "-I", "-c", _ASK, LANGUAGE, COMPILER, RUNTIME),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except OSError as e:
        raise _unfit(python, e.strerror) from e
    except subprocess.TimeoutExpired as e:
        raise _unfit(python, f"no answer within {e.timeout:g} s") from e
    except subprocess.CalledProcessError as e:
        raise _unfit(python, f"status {e.returncode}") from e
    versions, paths, prefix, executable = json.loads(said.stdout)
    tcc = Path(paths["scripts"]) / COMPILER
    if LANGUAGE not in versions or COMPILER not in versions or not tcc.exists():
        return None
    itself = (
        str(Path(paths["scripts"]) / "python"),
        str(python),
        executable,
        str(Path(executable).resolve()),
        paths["stdlib"],
        str(Path(prefix) / "pyvenv.cfg"),
        str(Path(executable).resolve().parent.parent / "lib"),
    )
    return Environment(python, tcc, versions, Path(paths["purelib"]), itself)
