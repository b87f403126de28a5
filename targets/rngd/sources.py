"""The target's own sources for a kernel: baseline, canaries, load-only variant."""

import re
from typing import Final

from targets.protocol import Sources
from targets.rngd.kernels import text
from targets.rngd.task import Task

SLOWDOWN: Final = 3
"""The slow canary takes at least so many times the baseline's cycles."""
_SPLIT: Final = 4
"""Tiles of the slow canary for one of the baseline's."""
_MEAN: Final = "1.0 / n"
_TILES: Final = re.compile(r"(Tiles = tcl\.Axis\(|tcl\.range\(0, )(\d+)")
_ROWS: Final = re.compile(r"(Rows = tcl\.Axis\()(\d+)")


def sources(task: Task) -> Sources:
    """Return the baseline, both canaries and the load-only variant."""
    baseline = text("baselines", task.name)
    return Sources(baseline, _wrong(baseline), _slow(baseline), {"loads": text("loads", task.name)})


def _wrong(baseline: str) -> str:
    """Return the baseline with every mean square twice as large as it is."""
    return baseline.replace(_MEAN, "2.0 / n")


def _slow(baseline: str) -> str:
    """Return the baseline with smaller tiles: the same sums, and many times their overhead."""
    more = _TILES.sub(lambda found: f"{found[1]}{int(found[2]) * _SPLIT}", baseline)
    return _ROWS.sub(lambda found: f"{found[1]}{int(found[2]) // _SPLIT}", more)
