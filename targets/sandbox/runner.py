"""The runner: a small C program that confines itself, then runs hostile code."""

import hashlib
import os
import signal
import stat
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Final

from targets.protocol import TargetError
from targets.sandbox.compiler import Compiler, compiler

REFUSED: Final = 40
"""Exit status of the runner where it cannot confine."""
_LINK: Final = (
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,--no-as-needed",
    "-l:libm.so.6",  # artifacts call it; by its plain name one compiler leaves it out as unused
    "-ldl",
)
_SOURCES: Final = ("main.c", "confine.c", "job.c")
_HEADERS: Final = ("confine.h", "job.h")


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
    made_of = (cc.command, cc.version, _LINK, texts)
    key = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
    program = cache() / f"runner-{key}"
    if not program.exists():  # the first time, or the system has tidied its temporary files
        _build(cc, texts, program)
    _probe(program)
    return program


def isolation() -> str:
    """Say what confines untrusted code on this machine, for people.

    Raises:
        TargetError: nothing that suffices does.
    """
    abi = _probe(runner())
    files_too = f"Landlock (ABI {abi})" if abi != "0" else "no Landlock (older kernel or container)"
    return f"seccomp, resource limits, {files_too}"


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a process that works in ``folder``: nothing of this one's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ZIG_GLOBAL_CACHE_DIR": str(zig_cache()),
        "ZIG_LOCAL_CACHE_DIR": str(folder / "zig-cache"),
    }


def zig_cache() -> Path:
    """Return the folder that the compiler of the wheel keeps what it built once in."""
    folder = cache() / "zig"
    folder.mkdir(exist_ok=True)
    return folder


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own session, and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def awaited(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """Wait for a process that leads its own session, then end everything that it started.

    Returns:
        Its exit status, None if it ran past the limit.
    """
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(process)


def begin_of(file: IO[bytes], max_bytes: int) -> str:
    """Return the begin of what was printed into a file."""
    file.seek(0)
    return file.read(max_bytes).decode("utf-8", "replace")


@lru_cache(maxsize=1)
def _texts() -> dict[str, bytes]:
    folder = files("targets.sandbox").joinpath("program")
    return {name: folder.joinpath(name).read_bytes() for name in (*_SOURCES, *_HEADERS)}


@lru_cache(maxsize=1)
def _probe(program: Path) -> str:
    said = subprocess.run([program, "probe"], capture_output=True, text=True, timeout=30)
    if said.returncode:
        raise TargetError("this kernel has no seccomp filters: untrusted kernels cannot run here")
    return said.stdout.strip()


def _build(cc: Compiler, texts: dict[str, bytes], program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent) as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_bytes(text)
        built = subprocess.run(
            (*cc.command, "-O2", "-std=gnu11", *_SOURCES, "-o", "runner", *_LINK),
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=300,
        )
        if built.returncode:
            raise TargetError(f"the sandbox does not build here:\n{built.stderr}")
        (folder / "runner").replace(program)
