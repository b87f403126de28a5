"""A device job: all arms' programs, and a script that runs them in the order of the schedule."""

import math
import secrets
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from targets.gemma4.kernels import kernel as gemma_kernel
from targets.noisy import job_s
from targets.protocol import Measured, MeasureFailed, Run
from targets.rngd.opt.arena import MAX_JOB_S, Arena, Job
from targets.rngd.opt.outcomes import MARK, Failed, Reading, read_all

DEVICE_HZ: Final = 2e9
"""Of the counter that the test reads; the static schedule's cycles are half as many a second."""
NO_PROBE_S: Final = 0.0
"""Others use the chip between two jobs, and nothing tells its condition."""
_SCRIPT: Final = "job.sh"
_STOPPED: Final = (124, 137)
"""Exit statuses of a job that the service ended at its timeout."""


@dataclass(frozen=True)
class Order:
    """A device job as the target protocol words it, with the arms' programs."""

    kernel: str
    binaries: Sequence[bytes]
    schedule: Sequence[int]
    launches: int
    checked: Sequence[bool]
    seed: int
    limit_s: float

    @property
    def lasts_s(self) -> float:
        """How long the job takes if nothing goes wrong."""
        return job_s(len(self.schedule), self.launches)

    @property
    def labels(self) -> list[str]:
        """What each run is told to print with its verdict."""
        return [f"seed-{self.seed}-run-{number}" for number in range(len(self.schedule))]


def measure(order: Order, arena: Arena) -> Measured | MeasureFailed:
    """Run a job on the service; every arm's outputs are judged in every run.

    Raises:
        TargetError: the service's program is missing.
    """
    if order.lasts_s > MAX_JOB_S:
        said = (
            f"rejected: the job takes about {order.lasts_s:.0f} s, the service allows {MAX_JOB_S}"
        )
        return MeasureFailed(None, f"{said}: have fewer launches or pairs in a job")
    ticket = secrets.token_hex(8)
    timeout_s = min(MAX_JOB_S, math.ceil(order.limit_s))
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        files = _files(order, ticket, Path(name))
        ended = arena.run(Job(f"kernelwright-{ticket}", files, _SCRIPT, timeout_s))
    read = read_all(ended.log, ticket, order.kernel, order.labels, order.launches)
    if isinstance(ended, Failed):
        # A hang is the run's that had begun and not ended; all else is not the arms' to answer for.
        at = read.run if isinstance(read, Failed) and ended.ending == "hung" else None
        return _failed(order, Failed(ended.ending, ended.detail, at))
    if isinstance(read, Failed):
        stopped = read.ending == "lost" and ended.status in _STOPPED
        return _failed(order, replace(read, ending="hung") if stopped else read)
    if ended.status:
        return _failed(order, Failed("lost", f"the job's exit status is {ended.status}"))
    return _measured(order, read)


def _files(order: Order, ticket: str, folder: Path) -> list[Path]:
    """Write what is submitted: equal programs once each, for arms are told apart by number."""
    files = [folder / _SCRIPT]
    files[0].write_text(script(order, ticket), encoding="utf-8")
    for arm, binary in enumerate(order.binaries):
        files.append(folder / f"arm-{arm}")
        files[-1].write_bytes(binary)
    for file in files:
        file.chmod(0o755)
    return files


def script(order: Order, ticket: str) -> str:
    """Return the job's script; `docs/targets/rngd.md` says what the test makes of the variables."""
    lines = ["#!/bin/sh", f"chmod +x arm-* && echo {MARK} {ticket} 0 0"]
    for number, (arm, label) in enumerate(zip(order.schedule, order.labels, strict=True), 1):
        variables = variables_of("npu", label, order.seed, order.launches)
        told = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
        lines.append(f"{told} ./arm-{arm} {order.kernel} --exact --nocapture")
        lines.append(f"echo {MARK} {ticket} {number} $?")
    return "\n".join(lines) + "\n"


def variables_of(backend: str, label: str, seed: int, launches: int) -> dict[str, str]:
    """Return what the project's test is told: where to run, what to print, inputs, how often."""
    return {
        "KERNELWRIGHT_BACKEND": backend,
        "KERNELWRIGHT_LABEL": label,
        "KERNELWRIGHT_SEED": str(seed),
        "KERNELWRIGHT_LAUNCHES": str(launches),
    }


def margin_of(kernel: str, error: float) -> float:
    """Return the most that a passing output can have used of its tolerance.

    The test tells the absolute error and not of which output; a passing one is within 1.
    """
    return min(1.0, error / gemma_kernel(kernel, "full").atol)


def _measured(order: Order, readings: Sequence[Reading]) -> Measured:
    runs = tuple(
        Run(arm, tuple(n / DEVICE_HZ for n in read.cycles), NO_PROBE_S)
        for arm, read in zip(order.schedule, readings, strict=True)
    )
    worst = [0.0] * len(order.binaries)
    for arm, read in zip(order.schedule, readings, strict=True):
        worst[arm] = max(worst[arm], margin_of(order.kernel, read.error))
    margins = (m if asked else None for m, asked in zip(worst, order.checked, strict=True))
    return Measured(runs, tuple(margins))


def _failed(order: Order, failed: Failed) -> MeasureFailed:
    """Blame an arm for what its own run did, and nobody for what was lost or not counted."""
    blamed = failed.run is not None and failed.ending in ("fail", "hung")
    arm = order.schedule[failed.run] if blamed and failed.run is not None else None
    return MeasureFailed(arm, str(failed))
