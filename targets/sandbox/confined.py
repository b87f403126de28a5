"""A program that works in a folder of its own, within limits, and sees nothing else."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from targets.protocol import TargetError
from targets.sandbox.runner import REFUSED, awaited, begin_of, environment, runner

MAX_PRINTED: Final = 256 << 10
"""Bytes of what a confined program prints that are looked at, of either stream."""
ALONE: Final = 1
"""As a limit of processes: no other process, no socket, no signal to others; threads are fine."""


class Limits(NamedTuple):
    """What a confined program may use."""

    wall_s: float
    cpu_s: int
    space_bytes: int
    """Of address space, in each of its processes."""
    file_bytes: int
    """Of any one file, what it prints included."""
    processes: int
    """`ALONE`, or more: then of the whole user, so it bounds a fork bomb and nothing else."""


class Reads(NamedTuple):
    """Files and folders that a confined program may read and execute."""

    roots: tuple[str, ...]
    """With everything below."""
    listed: tuple[str, ...] = ()
    """Folders whose names alone may be seen, theirs and those of all below."""


class Printed(NamedTuple):
    """How a confined program ended."""

    status: int | None
    """Negative: by a signal. None: it ran past the time limit."""
    out: str
    err: str


def confined(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    reads: Reads,
    writes: Sequence[str] = (),
) -> list[str]:
    """Return the command that runs ``command`` confined; its parent must be this process.

    Whoever starts it gives it a session of its own, and ends it with `kill_group`.

    Args:
        command: program and arguments.
        folder: where it may do anything.
        limits: of each of its processes.
        reads: what else of the file system it sees.
        writes: further places where it may do anything.

    Raises:
        TargetError: this machine cannot confine.
    """
    numbers = (os.getpid(), limits.cpu_s, limits.space_bytes, limits.file_bytes, limits.processes)
    return [
        str(runner()), "run", *map(str, numbers),
        *reads.listed, "--", *reads.roots, "--", str(folder), "/dev/null", *writes, "--", *command,
    ]  # fmt: skip


def run(
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    reads: Reads,
    *,
    writes: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Printed:
    """Run a program confined in ``folder``, as working directory, and leave no process behind.

    Returns:
        Its exit status and the begin of what it printed, without the folder's path.

    Raises:
        TargetError: the kernel refuses to confine it.
    """
    # Into files, whose size the confinement limits: warnings on long lines come to gigabytes.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            confined(command, folder, limits, reads, writes),
            cwd=folder,
            env={**environment(folder), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status = awaited(process, limits.wall_s)
        if status is None:
            return Printed(None, "", "")
        if status == REFUSED:
            raise TargetError("the kernel refuses to confine a program; see `kernelwright doctor`")
        texts = [begin_of(file, MAX_PRINTED) for file in (out, err)]
        plain = (text.replace(f"{folder}/", "").replace(str(folder), ".") for text in texts)
        return Printed(status, *plain)


def left_in(path: Path, max_bytes: int) -> bytes | None:
    """Return what a confined program left in a plain file, None if there is none, or too much.

    It could have left a link to what it may not read itself, or a pipe that nobody writes to.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not os.path.isfile(fd):
        os.close(fd)
        return None
    with open(fd, "rb") as file:
        data = file.read(max_bytes + 1)
    return data if len(data) <= max_bytes else None
