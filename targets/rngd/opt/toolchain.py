"""The vendor's Rust toolchain and the user's project, and what a confined build sees of them."""

import hashlib
import os
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from targets.protocol import TargetError
from targets.rngd.environment import without
from targets.rngd.opt.programs import ask
from targets.sandbox.confined import Reads

VARIABLE: Final = "KERNELWRIGHT_FURIOSA_OPT"
"""Environment variable with the folder of the project whose device files are to be written."""
PLUGIN: Final = "cargo-furiosa-opt"
LIBRARY: Final = "furiosa-opt-std"
VERSION: Final = "0.6.0"
"""Of both; they are released together, and 0.7.0 does not build projects of 0.6.0."""
NIGHTLY: Final = "nightly-2026-05-01"
INSTALL: Final = f"install {PLUGIN} {VERSION} with the Rust toolchain {NIGHTLY}"
_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")
_MACHINE: Final = ("/proc/cpuinfo", "/proc/meminfo", "/dev/urandom")
_SECRETS: Final = ("credentials", "credentials.toml")
_LEFT_OUT: Final = ("target", ".git")
_ASK_S: Final = 60.0


@dataclass(frozen=True)
class Toolchain:
    """The toolchain of the expected version, with a project that is pinned to it."""

    cargo: Path
    project: Path
    homes: tuple[Path, Path]
    """Of cargo and of rustup."""

    @property
    def reads(self) -> Reads:
        """What a confined build sees: no keys of the package index among it."""
        hidden = [self.homes[0] / name for name in _SECRETS]
        homes = [str(home) for home in self.homes if home.exists()]
        return without((*_SYSTEM, *_MACHINE, str(self.cargo), *homes), hidden)

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a confined build; it fetches nothing."""
        return {
            "PATH": f"{self.cargo.parent}:{self.homes[0] / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "CARGO_HOME": str(self.homes[0]),
            "RUSTUP_HOME": str(self.homes[1]),
            "CARGO_NET_OFFLINE": "true",
            "CARGO_TERM_COLOR": "never",
        }

    def copy(self, folder: Path) -> None:
        """Copy the project without what was built of it: stale programs have been timed before."""
        shutil.copytree(
            self.project, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True
        )


def project() -> Path:
    """Return the folder of the project.

    Raises:
        TargetError: none is named, or there is no project.
    """
    # The machine's answer, like the search path's: where a project is is no choice of a run's.
    named = os.environ.get(VARIABLE, "")  # noqa: TID251
    if not named:
        raise TargetError(f"name the folder of a {LIBRARY} {VERSION} project in {VARIABLE}")
    folder = Path(named).absolute()
    if not (folder / "Cargo.toml").is_file():
        raise TargetError(f"{VARIABLE}: {folder} is no project: it has no Cargo.toml")
    return folder


def toolchain() -> Toolchain:
    """Find the toolchain and the project.

    Raises:
        TargetError: one of them is missing, or of another version; the text says what to do.
    """
    cargo = shutil.which("cargo")
    if cargo is None or shutil.which(PLUGIN) is None:
        raise TargetError(f"{PLUGIN if cargo else 'cargo'} is not on the path: {INSTALL}")
    said = ask((cargo, "furiosa-opt", "--version"), _ASK_S)
    found = re.search(r"\d+\.\d+\.\d+\S*", said.out) if said.status == 0 else None
    if found is None:
        raise TargetError(f"{PLUGIN} does not tell its version ({said.reason}): {INSTALL}")
    if found[0] != VERSION:
        raise TargetError(f"{PLUGIN} is {found[0]}; kernels are written for {VERSION}: {INSTALL}")
    folder = project()
    _pinned(folder)
    return Toolchain(Path(cargo), folder, (_home("CARGO_HOME"), _home("RUSTUP_HOME")))


def digest(folder: Path) -> str:
    """Return the SHA-256 of the files of a folder, of their names and contents."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in _LEFT_OUT:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{relative.as_posix()}\0{content}\n".encode())
    return whole.hexdigest()


def _pinned(folder: Path) -> None:
    """Refuse a project whose library is of another version than the toolchain."""
    lock = folder / "Cargo.lock"
    try:
        packages = tomllib.loads(lock.read_text(encoding="utf-8")).get("package", [])
    except (OSError, ValueError) as e:
        raise TargetError(f"{lock} cannot be read: make it with `cargo generate-lockfile`") from e
    there = {p.get("version") for p in packages if p.get("name") == LIBRARY}
    if there != {VERSION}:
        has = " and ".join(sorted(map(str, there))) or "none"
        raise TargetError(f"{lock} has {LIBRARY} {has}; pin it to {VERSION} in Cargo.toml")


def _home(variable: str) -> Path:
    default = Path.home() / f".{variable.removesuffix('_HOME').lower()}"
    return Path(os.environ.get(variable, "") or default).absolute()  # noqa: TID251
