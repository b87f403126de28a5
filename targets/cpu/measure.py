"""Paired timing: all arms in one confined process, on weights that no cache holds."""

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

from targets.cpu.check import POISONS, judge
from targets.cpu.clock import clock_fault, memory_fault
from targets.cpu.image import Image, image, n_copies, rotation_bytes
from targets.cpu.job import Launch, Step, Transcript, run_job
from targets.gemma4.kernels import Kernel
from targets.protocol import Measured, MeasureFailed, Run

_N_VARIANTS: Final = 3
"""Inputs that recur over a job."""
_N_FRESH: Final = 4
"""Inputs that an arm of a job sees once: as many as the longest job of pairs reports."""


def measure(
    kernel: Kernel,
    arms: Sequence[bytes],
    schedule: Sequence[int],
    *,
    group: int,
    launches: int,
    checked: Sequence[bool],
    seed: int,
    limit_s: float,
) -> Measured | MeasureFailed:
    """Time arms in the order of ``schedule``; the arguments are those of the target protocol.

    Raises:
        TargetError: this machine cannot confine the artifacts.
    """
    inputs = _image(kernel, seed)
    steps = _steps(inputs, schedule, group, launches, checked)
    core = max(os.sched_getaffinity(0))
    with _away_from(core):
        job = run_job(inputs, arms, steps, limit_s=limit_s, call_limit_s=limit_s, core=core)
    if job.stop:
        return MeasureFailed(job.stop.arm, job.stop.reason)
    runs = [job.launches[i : i + launches] for i in range(0, len(steps), launches)]
    margins = _margins(inputs, steps, job, checked)
    if isinstance(margins, MeasureFailed):
        return margins
    outputs = sum(b.n_bytes for b in kernel.buffers if b.part not in ("in", "weight"))
    for arm in sorted(set(schedule)):
        weights = kernel.weight_bytes if checked[arm] else 0
        if fault := clock_fault(steps, job.launches, arm, weights=weights, outputs=outputs):
            return fault
        if fault := memory_fault(steps, job.launches, arm):
            return fault
    return Measured(_timed(schedule, runs), margins)


@contextmanager
def _away_from(core: int) -> Iterator[None]:
    """Keep this thread, which reads the reports, off the core that is measured."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        yield
        return
    os.sched_setaffinity(0, before - {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@lru_cache(maxsize=3)
def _image(kernel: Kernel, seed: int) -> Image:
    n = n_copies(kernel, rotation_bytes(_cache_sizes()))
    return image(kernel, seed, 0, n_variants=_N_VARIANTS + _N_FRESH, n_stored=n, n_mapped=n)


def _cache_sizes() -> list[int]:
    """Return the sizes in bytes of this machine's data caches, as far as it tells."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        if found := re.fullmatch(r"(\d+)([KMG]?)", path.read_text(encoding="ascii").strip()):
            sizes.append(int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]])
    return sizes


def _steps(
    inputs: Image, schedule: Sequence[int], group: int, launches: int, checked: Sequence[bool]
) -> list[Step]:
    """Plan every launch; copies take turns over the whole job, so that each comes back cold.

    Reported launches have inputs of their own, so that there a remembered output is none. Which
    launches and which inputs they are is drawn anew for each job: an artifact can tell launches
    apart by the addresses that it gets, and would leave work out where nobody looks.
    """
    n_stored = len(inputs.weight_offsets)
    draw = secrets.SystemRandom()
    variants = draw.sample(range(_N_VARIANTS + _N_FRESH), _N_VARIANTS + _N_FRESH)
    steps: list[Step] = []
    for run, arm in enumerate(schedule):
        fresh = _N_VARIANTS + schedule[:run].count(arm) % _N_FRESH
        reported = draw.randrange(launches)
        for launch in range(launches):
            i = len(steps)
            report = checked[arm] and launch == reported
            steps.append(
                Step(
                    arm=arm,
                    copy=i % n_stored,
                    variant=variants[fresh if report else (run + launch) % _N_VARIANTS],
                    room=0,
                    poison=POISONS[i % len(POISONS)],
                    probe=launch == 0 and run % group == 0,
                    report=report,
                )
            )
    return steps


def _margins(
    inputs: Image, steps: Sequence[Step], job: Transcript, checked: Sequence[bool]
) -> tuple[float | None, ...] | MeasureFailed:
    worst: list[float | None] = [None] * len(checked)
    for step, launch in zip(steps, job.launches, strict=True):
        if launch.overrun:
            return MeasureFailed(step.arm, f"wrote outside its buffers: around {launch.overrun}")
        if not step.report:
            continue
        margin, detail = judge(inputs, step.variant, launch)
        if detail or margin is None:
            return MeasureFailed(step.arm, detail or "its outputs cannot be compared")
        worst[step.arm] = max(worst[step.arm] or 0.0, margin)
    return tuple(worst)


def _timed(schedule: Sequence[int], runs: Sequence[Sequence[Launch]]) -> tuple[Run, ...]:
    timed, probe_s = [], 0.0
    for arm, run in zip(schedule, runs, strict=True):
        probe_s = run[0].probe_s if run[0].probe_s is not None else probe_s
        timed.append(Run(arm, tuple(launch.claimed_s for launch in run), probe_s))
    return tuple(timed)
