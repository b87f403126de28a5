"""Figures from fresh, fixed-size samples: a median and its distribution-free interval."""

import math
from collections.abc import Sequence


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the median of ``values`` and an interval of order statistics around it.

    Args:
        values: at least one independent reading.
        level: confidence; the interval covers the true median at least so often, whatever the
            distribution, if there are enough readings (6 for 95 %); with fewer it is the range.

    Source:
        Conover, "Practical Nonparametric Statistics", 3rd ed., 3.2: binomial(n, 1/2) bounds on
        the ranks.
    """
    ordered = sorted(values)
    n = len(ordered)
    middle = n // 2
    median = ordered[middle] if n % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    tail, rank = 0.0, 0
    while rank < middle:
        tail += math.comb(n, rank) / 2.0**n
        if 2 * tail > 1 - level:
            break
        rank += 1
    low = ordered[max(rank - 1, 0)]
    return median, low, ordered[n - 1 - max(rank - 1, 0)]
