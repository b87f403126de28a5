"""Faults of the system itself, put into a process of ours by strace."""

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.child import Child, Work

CALLS = ("pwrite64", "fdatasync", "fsync", "ftruncate", "/^rename")
"""Those that change the disk, or wait for it."""


def run(work: Work, trace: Path, faults: Sequence[str] = ()) -> list[str]:
    """Do ``work`` in a process with these faults; return what it said.

    Args:
        work: the work.
        trace: file for its `CALLS`, one a line, with the paths that they are about.
        faults: as strace's option ``inject`` takes them.
    """
    if not (strace := shutil.which("strace")):
        pytest.skip("there is no strace here")
    child = Child(work)
    orders = [part for fault in faults for part in ("-e", f"inject={fault}")]
    command = [strace, "-qq", "-y", "-o", str(trace), "-e", f"trace={','.join(CALLS)}", *orders]
    with subprocess.Popen([*command, "-p", str(child.pid)], stderr=subprocess.PIPE) as tracer:
        while "\nTracerPid:\t0\n" in Path(f"/proc/{child.pid}/status").read_text():
            if tracer.poll() is not None:
                assert tracer.stderr is not None
                child.go().end()
                pytest.skip(f"strace may not trace here: {tracer.stderr.read().decode()}")
            time.sleep(0.001)
        said = child.go().end()
    assert tracer.returncode == 0
    return said


def calls(trace: Path) -> list[str]:
    """The calls in a trace."""
    return [line for line in trace.read_text().splitlines() if line[:1].isalpha()]
