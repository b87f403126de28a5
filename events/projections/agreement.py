"""How far static costs and the device have agreed about a kernel."""

import math
from dataclasses import dataclass

NEUTRAL = 0.5
"""Static changes smaller than this say nothing, log-percent."""


@dataclass(slots=True)
class Agreement:
    """What became of static costs: candidates accepted or rejected after a reading."""

    n_compared: int = 0
    """Those with a static change that said something."""
    n_agreed: int = 0
    """Those of them that the device found changed to the same side."""
    worst: float = 0.0
    """The most by which a static cost was too pessimistic, log-percent."""

    def compare(self, change: float, effect: float) -> None:
        """A candidate with a static change has an effect on the device, both in log-percent."""
        if abs(change) < NEUTRAL:
            return
        self.n_compared += 1
        self.n_agreed += (change < 0) == (effect < 0)
        self.worst = max(self.worst, round(change - effect, 6))


def log_percent(cycles: int, other: int) -> float:
    """Return the change from ``other`` to ``cycles``; negative is faster.

    It is rounded, since the logarithms of different machines differ in their last bits.
    """
    return round(100 * math.log(cycles / other), 6)
