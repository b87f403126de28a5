"""The runner: a small C program that confines itself, then compiles or runs hostile code."""

import hashlib
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from targets.cpu.toolchain import Compiler, compiler
from targets.protocol import TargetError

REFUSED: Final = 40
"""Exit status of the runner where it cannot confine."""
_RUNNER_LINK: Final = (
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,--no-as-needed",
    "-l:libm.so.6",  # artifacts call it; by its plain name one compiler leaves it out as unused
    "-ldl",
)
_SOURCES: Final = ("main.c", "confine.c", "job.c")
_HEADERS: Final = ("confine.h", "job.h")

COMPILE_WALL_S: Final = 60.0
_COMPILE_CPU_S: Final = 60
_COMPILE_SPACE: Final = 4 << 30
_COMPILE_FILE: Final = 64 << 20
MAX_PRINTED: Final = 256 << 10
"""Bytes of a compiler's output that are looked at."""
_COMPILE_PROCESSES: Final = 4096
"""The kernel counts all processes of the user, so this bounds a fork bomb and nothing else."""


class Printed(NamedTuple):
    """How a confined compiler ended."""

    status: int | None
    """None: it ran past the time limit."""
    text: str


def cache() -> Path:
    """Return this user's private folder for what is built once.

    Raises:
        TargetError: the folder belongs to somebody else or is open to others.
    """
    folder = Path(tempfile.gettempdir()) / f"kernelwright-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    private = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    if not private or about.st_mode & 0o077:
        raise TargetError(f"{folder} is not a private folder of this user; remove it")
    return folder


def runner() -> Path:
    """Return the runner's program, building it where that has not been done yet.

    Raises:
        TargetError: it does not build here, or the kernel has no seccomp.
    """
    cc, texts = compiler(), _texts()
    made_of = (cc.command, cc.version, _RUNNER_LINK, texts)
    key = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
    program = cache() / f"runner-{key}"
    if not program.exists():  # the first time, or the system has tidied its temporary files
        _build_runner(cc, texts, program)
    _probe(program)
    return program


@lru_cache(maxsize=1)
def _texts() -> dict[str, bytes]:
    folder = files("targets.cpu").joinpath("runner")
    return {name: folder.joinpath(name).read_bytes() for name in (*_SOURCES, *_HEADERS)}


@lru_cache(maxsize=1)
def _probe(program: Path) -> str:
    said = subprocess.run([program, "probe"], capture_output=True, text=True, timeout=30)
    if said.returncode:
        raise TargetError("this kernel has no seccomp filters: untrusted kernels cannot run here")
    return said.stdout.strip()


def _build_runner(cc: Compiler, texts: dict[str, bytes], program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent) as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_bytes(text)
        command = (*cc.command, "-O2", "-std=gnu11", *_SOURCES, "-o", "runner", *_RUNNER_LINK)
        environment = _environment(folder)
        built = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        if built.returncode:
            raise TargetError(f"the sandbox does not build here:\n{built.stderr}")
        (folder / "runner").replace(program)


def isolation() -> str:
    """Say what confines untrusted code on this machine, for people.

    Raises:
        TargetError: nothing that suffices does.
    """
    abi = _probe(runner())
    files_too = f"Landlock (ABI {abi})" if abi != "0" else "no Landlock (older kernel or container)"
    return f"seccomp, resource limits, {files_too}"


def run_compiler(arguments: Sequence[str], folder: Path) -> Printed:
    """Run the compiler confined to the system's files and ``folder``, as working directory.

    Returns:
        Its exit status and the first `MAX_PRINTED` bytes that it printed, without paths of this
        machine.

    Raises:
        TargetError: the kernel refuses to confine it.
    """
    cc = compiler()
    writable = [str(folder), "/dev/null"]
    if cc.family == "zig":
        writable.append(str(_zig_cache()))
    limits = (_COMPILE_CPU_S, _COMPILE_SPACE, _COMPILE_FILE, _COMPILE_PROCESSES)
    command = [str(runner()), "compile", str(os.getpid()), *map(str, limits)]
    command += [*cc.roots, "--", *writable, "--", *cc.command, *arguments]
    status, text = _finish(command, folder)
    if status == REFUSED:
        raise TargetError("the kernel refuses to confine the compiler; see `kernelwright doctor`")
    return Printed(status, text.replace(f"{folder}/", "").replace(str(folder), "."))


def _finish(command: Sequence[str], folder: Path) -> Printed:
    # Into a file, whose size the confinement limits: warnings on long lines come to gigabytes.
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(COMPILE_WALL_S)
        except subprocess.TimeoutExpired:
            return Printed(None, "")
        finally:
            kill_group(process)
        printed.seek(0)
        return Printed(process.returncode, printed.read(MAX_PRINTED).decode("utf-8", "replace"))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own session, and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _zig_cache() -> Path:
    folder = cache() / "zig"
    folder.mkdir(exist_ok=True)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ZIG_GLOBAL_CACHE_DIR": str(_zig_cache()),
        "ZIG_LOCAL_CACHE_DIR": str(folder / "zig-cache"),
    }
