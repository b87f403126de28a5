"""What a kernel in bf16 is checked on: two launches in a row, and the verdict on each."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from targets.gemma4.fixtures import fixture
from targets.gemma4.formats import bf16_encode
from targets.gemma4.kernels import Kernel
from targets.gemma4.reference import Arrays, Vector, expected, margin

_NARROWED: Final = {"q_rms": (0.5, 2.0), "k_rms": (0.5, 2.0), "layer_scalar": (0.25, 0.5)}
"""Factors of a result, by their range. With larger ones the roundings of a good kernel (x, h or a
head in bf16) would come close to the tolerance, which is absolute where a result is small."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The inputs of one launch and what the kernel must make of them."""

    kernel: Kernel
    seed: int
    """Of everything but the weights."""
    arrays: Mapping[str, NDArray[Any]]
    """Storage arrays of every in, weight and inout buffer; not writeable."""
    expected: Mapping[str, Vector]

    def judge(self, outputs: Arrays) -> tuple[float | None, str]:
        """Compare the storage arrays of every out and inout buffer with the reference.

        Returns:
            As `targets.protocol.FixtureResult` has them: the margin, and why it fails or "".
        """
        worst, detail = margin(self.kernel, self.arrays, self.expected, outputs)
        if worst is not None and not worst <= 1.0:
            detail = f"differs by {worst:.3g} tolerances"
        return worst, detail


@dataclass(frozen=True, eq=False)
class Launches:
    """Two launches in a row: what the first leaves behind must not help the second."""

    label: str
    """Distribution and amplitude, for reports."""
    pair: tuple[Drawn, Drawn]
    """On the same weights."""


def launches(kernel: Kernel, seed: int, index: int) -> Launches:
    """Draw a fixture; the same arguments give the same bits.

    Args:
        kernel: whose buffers.
        seed: of all values.
        index: picks distribution and amplitude.
    """
    first = fixture(kernel, seed, index)
    weights = {b.name: first.inputs[b.name] for b in kernel.weights}
    later = int.from_bytes(hashlib.sha256(f"{seed}".encode()).digest()[:6])
    second = {**fixture(kernel, later, index).inputs, **weights}
    return Launches(
        first.label, (_drawn(kernel, seed, first.inputs), _drawn(kernel, later, second))
    )


def _drawn(kernel: Kernel, seed: int, inputs: Arrays) -> Drawn:
    rng = np.random.Generator(np.random.SFC64([seed, len(inputs)]))
    narrowed = {
        factor: bf16_encode(rng.uniform(*ends, inputs[factor].size))
        for factor, ends in _NARROWED.items()
        if factor in inputs
    }
    arrays = {**inputs, **narrowed}
    for array in arrays.values():
        array.setflags(write=False)
    return Drawn(kernel, seed, arrays, expected(kernel, arrays))
