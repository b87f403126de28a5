"""Correctness of an artifact: launches on the processor, compared with the float64 reference."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from targets.gemma4.kernels import kernel
from targets.gemma4.launches import Drawn, Launches, launches
from targets.gemma4.reference import cache_row
from targets.protocol import FixtureResult
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import INSTALL_RUNTIME, RUNTIME, Environment
from targets.rngd.guard import judge
from targets.rngd.launching import Launcher
from targets.rngd.serving import StoppedError
from targets.rngd.task import Task

MAX_FIXTURES: Final = 15
"""Kept in memory, at up to 0.1 GB each."""
_LAUNCHERS: Final[dict[Path, Launcher]] = {}
"""Of this process, by interpreter: to start one takes seconds, and it holds a GB."""


def check(
    environment: Environment, task: Task, text: str, seeds: Sequence[int]
) -> tuple[FixtureResult, ...]:
    """Launch a kernel on one fixture per seed and stop at the first that fails.

    Each fixture is two launches: the second has other inputs on the same weights, so that a
    remembered or an unwritten output shows.

    Args:
        environment: whose functional runtime is used; without one nothing passes.
        task: which kernel.
        text: of it, as the compiler reads it; hostile.
        seeds: one per fixture; its position picks the distribution.

    Raises:
        TargetError: this machine cannot confine the runtime.
    """
    if not environment.functional:
        missing = f"{RUNTIME} is not installed, so no kernel can be accepted: `{INSTALL_RUNTIME}`"
        return (FixtureResult("functional runtime", None, missing),)
    judged = judge(task, text)
    if isinstance(judged, Diagnostic):
        return (FixtureResult("rules", None, judged.message),)
    launcher = _LAUNCHERS.setdefault(environment.python, Launcher(environment))
    results: list[FixtureResult] = []
    for index, seed in enumerate(seeds):
        results.append(check_one(launcher, task, str(judged), _launches(task.name, seed, index)))
        if not results[-1].passed:
            break
    return tuple(results)


def check_one(launcher: Launcher, task: Task, text: str, fixture: Launches) -> FixtureResult:
    """Launch a kernel that passed the rules on both inputs of a fixture."""
    worst = 0.0
    for number, drawn in enumerate(fixture.pair):
        which = " (second launch, on changed inputs)" if number else ""
        try:
            outputs = launcher.launch(task, text, arguments(drawn))
        except StoppedError as e:
            return FixtureResult(fixture.label, None, f"{e}{which}")
        margin, detail = drawn.judge(outputs)
        if margin is None or detail:
            return FixtureResult(fixture.label, margin, f"{detail}{which}")
        worst = max(worst, margin)
    return FixtureResult(fixture.label, worst, "")


@lru_cache(maxsize=MAX_FIXTURES)
def _launches(name: str, seed: int, index: int) -> Launches:
    return launches(kernel(name, "full"), seed, index)


def arguments(drawn: Drawn) -> dict[str, NDArray[Any]]:
    """Return the inputs of a launch as this target passes them: rows where others pass offsets."""
    arrays = dict(drawn.arrays)
    if "offsets" in arrays:
        row_bytes = 2 * drawn.kernel.dims["DS"]
        arrays["rope_row"] = (arrays.pop("offsets")[:1] // row_bytes).astype(np.int32)
        arrays["cache_row"] = np.array([cache_row(drawn.kernel, drawn.arrays)], np.int32)
    return arrays
