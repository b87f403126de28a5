"""Correctness of an artifact: one confined process per fixture, two launches in each."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from targets.cpu.image import Image, image
from targets.cpu.job import Launch, Step, run_job
from targets.gemma4.kernels import Kernel
from targets.protocol import FixtureResult

CALL_LIMIT_S: Final = 10.0
_SETUP_LIMIT_S: Final = 60.0
POISONS: Final = (0xFF, 0x7F)
"""NaN in every float format; then huge finite values."""

_STEPS: Final = tuple(
    Step(arm=0, copy=i, variant=i, room=i, poison=poison, report=True)
    for i, poison in enumerate(POISONS)
)


def check(kernel: Kernel, artifact: bytes, seeds: Sequence[int]) -> tuple[FixtureResult, ...]:
    """Run an artifact on one fixture per seed and stop at the first that fails.

    Each fixture is two launches in one process: the second has other inputs, the same weights at
    other addresses, and other poison, so that a remembered or an unwritten output shows.

    Args:
        kernel: whose buffers and reference.
        artifact: hostile.
        seeds: one per fixture; its position picks the distribution.

    Raises:
        TargetError: this machine cannot confine the artifact.
    """
    results: list[FixtureResult] = []
    for index, seed in enumerate(seeds):
        results.append(_check_one(_image(kernel, seed, index), artifact))
        if not results[-1].passed:
            break
    return tuple(results)


@lru_cache(maxsize=12)
def _image(kernel: Kernel, seed: int, index: int) -> Image:
    n = len(_STEPS)
    return image(kernel, seed, index, n_variants=n, n_stored=1, n_mapped=n)


def _check_one(inputs: Image, artifact: bytes) -> FixtureResult:
    limit_s = _SETUP_LIMIT_S + len(_STEPS) * CALL_LIMIT_S
    job = run_job(inputs, [artifact], _STEPS, limit_s=limit_s, call_limit_s=CALL_LIMIT_S)
    worst: float | None = None
    for i, launch in enumerate(job.launches):
        margin, detail = judge(inputs, i, launch)
        worst = margin if worst is None or margin is None else max(worst, margin)
        if detail:
            return FixtureResult(inputs.label, margin, f"{detail}{_which(i)}")
    if job.stop:
        return FixtureResult(inputs.label, None, f"{job.stop.reason}{_which(len(job.launches))}")
    return FixtureResult(inputs.label, worst, "")


def _which(launch: int) -> str:
    return " (second launch, on changed inputs)" if launch else ""


def judge(inputs: Image, variant: int, launch: Launch) -> tuple[float | None, str]:
    """Return a launch's margin, and why it is wrong; "" if it is right."""
    if launch.overrun:
        return None, f"wrote outside its buffers: around {launch.overrun}"
    if launch.outputs is None:
        raise ValueError("the launch has no outputs to judge")
    return inputs.margin(variant, launch.outputs)
