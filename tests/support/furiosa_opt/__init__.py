"""Stand-ins for the vendor's Rust toolchain and its Arena service, put up in a folder."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from targets.gemma4.kernels import KERNELS
from targets.rngd.opt.arena import PROGRAM, Clock
from targets.rngd.opt.toolchain import PLUGIN, VARIABLE, VERSION

HERE = Path(__file__).parent
SOURCE = """\
// A device file, as far as the stand-in reads it.
const MAKESPAN: u32 = 90000;
const CYCLES: u32 = {cycles};
const ERROR: &str = "{error}";
const WORD: &str = "{word}";
"""


def device(cycles: object = 180000, error: str = "0.01", word: str = "PASS", more: str = "") -> str:
    """Return a device file that the stand-in makes a program of that prints just this."""
    return SOURCE.format(cycles=cycles, error=error, word=word) + more


class Place:
    """A machine with the stand-ins on its path, and a project."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "cargo-home"
        self.bin = self.home / "bin"
        self.project = folder / "project"
        self.service = folder / "service"
        for made in (self.bin, self.service, self.project / "src" / "device"):
            made.mkdir(parents=True)
        for name in ("cargo", PLUGIN):
            self.put(name, "cargo.py")
        self.put(PROGRAM, "arena.py")
        self.version(VERSION)
        self.behave()
        (self.project / "Cargo.toml").write_text('[package]\nname = "kernels"\n')
        self.pin(VERSION)
        for kernel in KERNELS:
            (self.project / "src" / "device" / f"{kernel}.rs").write_text(device())
            own = self.project / "kernelwright" / kernel
            own.mkdir(parents=True)
            for name in ("wrong", "slow", "loads"):
                (own / f"{name}.rs").write_text(device(more=f"// {name}\n"))
        monkeypatch.setenv("PATH", f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setenv("CARGO_HOME", str(self.home))
        monkeypatch.setenv("RUSTUP_HOME", sys.base_prefix)
        monkeypatch.setenv(VARIABLE, str(self.project))

    def put(self, name: str, source: str) -> None:
        """Put a stand-in on the path."""
        text = (HERE / source).read_text(encoding="utf-8")
        program = self.bin / name
        program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{text}")
        program.chmod(0o755)

    def version(self, version: str) -> None:
        """Have the toolchain be another version."""
        (self.bin / "version").write_text(version)

    def pin(self, version: str) -> None:
        """Have the project use another version of the library."""
        lock = f'[[package]]\nname = "furiosa-opt-std"\nversion = "{version}"\n'
        (self.project / "Cargo.lock").write_text(lock)

    def behave(self, **how: Any) -> None:
        """Have the service misbehave, or no longer."""
        shutil.rmtree(self.service)
        self.service.mkdir()
        (self.bin / "service.json").write_text(json.dumps({"state": str(self.service), **how}))

    @property
    def calls(self) -> list[list[str]]:
        """What the service was called with."""
        lines = (self.service / "calls").read_text().splitlines()
        return [json.loads(line) for line in lines]


class FakeTime:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def clock(self) -> Clock:
        """Return it as the client takes it."""
        return Clock(lambda: self.now_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
