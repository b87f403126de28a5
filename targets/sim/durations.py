"""What the work of the simulated NPU takes, in virtual seconds.

Where no source is named the number is assumed.
"""

import hashlib
from math import exp, log
from typing import Final

import numpy as np

BUILD_S: Final = 120.0
"""A whole compilation: the vendor's compiler takes about two minutes for a kernel."""
LOADS_BUILD_S: Final = 5.0
"""The same for a source that only loads."""
REFUSED_S: Final = 30.0
"""A compilation that ends at an error: the vendor's takes 23-37 s to get through its front end."""
CHECK_S: Final = 20.0
"""One fixture: two launches and the float64 reference."""
THOUGHT_S: Final = 60.0
"""Median of a model's reply; such times are log-normal."""
THOUGHT_SD: Final = 0.5
"""Of its logarithm."""


def thought_s(*asked: object) -> float:
    """Return how long an agent thinks, in seconds; the same question, the same time."""
    seed = hashlib.sha256(repr(asked).encode()).digest()
    deviations = float(np.random.default_rng(list(seed)).standard_normal())
    return exp(log(THOUGHT_S) + THOUGHT_SD * deviations)
