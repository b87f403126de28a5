"""Inputs to check a kernel of the simulated NPU on, and the verdict on what it makes of them.

Sizes, distributions, mathematics and tolerances are those of every target: `targets.gemma4`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sim.npu.memo import Launch
from targets.gemma4.fixtures import fixture as drawn_fixture
from targets.gemma4.formats import bf16_encode
from targets.gemma4.kernels import Kernel, kernel
from targets.gemma4.reference import Vector, expected, margin

Arrays = Mapping[str, NDArray[Any]]

_NARROWED: Final = {"q_rms": (0.5, 2.0), "k_rms": (0.5, 2.0), "layer_scalar": (0.25, 0.5)}
"""Factors of a result, by their range. With larger ones the roundings of a good kernel (x, h or a
head in bf16) would come close to the tolerance, which is absolute where a result is small."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of one launch and what the kernel must make of them."""

    kernel: Kernel
    launch: Launch
    """Its arguments are not writeable."""
    expected: Mapping[str, Vector]

    def judge(self, outputs: Arrays) -> tuple[float | None, str]:
        """Compare the codes of every out and inout argument with the reference.

        Returns:
            As `targets.protocol.FixtureResult` has them: the margin, and why it fails or "".
        """
        shapes = {b.name: b.storage_shape for b in self.kernel.buffers}
        flat = {name: codes.reshape(shapes[name]) for name, codes in outputs.items()}
        worst, detail = margin(self.kernel, self.launch.arguments, self.expected, flat)
        if worst is not None and not worst <= 1.0:
            detail = f"differs by {worst:.3g} tolerances"
        return worst, detail


@dataclass(frozen=True, eq=False)
class Fixture:
    """Two launches in a row: what the first leaves behind must not help the second."""

    label: str
    """Distribution and amplitude, for reports."""
    launches: tuple[Inputs, Inputs]
    """On the same weights."""


def fixture(name: str, seed: int, index: int) -> Fixture:
    """Draw a fixture at full size; the same arguments give the same bits.

    Args:
        name: of the kernel.
        seed: of all values.
        index: picks distribution and amplitude.
    """
    full = kernel(name, "full")
    first = drawn_fixture(full, seed, index)
    weights = {b.name: first.inputs[b.name] for b in full.buffers if b.part == "weight"}
    second = drawn_fixture(full, _derived(seed), index)
    launches = (
        _inputs(full, f"{seed}/{index}/0", first.inputs, seed),
        _inputs(full, f"{seed}/{index}/1", {**second.inputs, **weights}, _derived(seed)),
    )
    return Fixture(first.label, launches)


def _derived(seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}".encode()).digest()[:6])


def _inputs(full: Kernel, name: str, drawn: Arrays, seed: int) -> Inputs:
    rng = np.random.Generator(np.random.SFC64([seed, len(drawn)]))
    narrowed = {
        factor: bf16_encode(rng.uniform(*ends, drawn[factor].size))
        for factor, ends in _NARROWED.items()
        if factor in drawn
    }
    arrays = {**drawn, **narrowed}
    for array in arrays.values():
        array.setflags(write=False)
    launch = Launch(f"{full.name}/{name}", arrays, seed)
    return Inputs(full, launch, expected(full, arrays))
