"""Inputs to check a kernel of the simulated NPU on, and the verdict on what it makes of them.

Sizes, distributions, mathematics and tolerances are those of every target: `targets.gemma4`.
"""

from dataclasses import dataclass

from sim.npu.memo import Launch
from targets.gemma4.kernels import kernel
from targets.gemma4.launches import Drawn, launches
from targets.gemma4.reference import Arrays


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of one launch and what the kernel must make of them."""

    launch: Launch
    """Its arguments are not writeable."""
    drawn: Drawn

    def judge(self, outputs: Arrays) -> tuple[float | None, str]:
        """Compare the codes of every out and inout argument with the reference.

        Returns:
            As `targets.protocol.FixtureResult` has them: the margin, and why it fails or "".
        """
        shapes = {b.name: b.storage_shape for b in self.drawn.kernel.buffers}
        return self.drawn.judge(
            {name: codes.reshape(shapes[name]) for name, codes in outputs.items()}
        )


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
    made = launches(kernel(name, "full"), seed, index)
    first, second = (
        Inputs(Launch(f"{name}/{seed}/{index}/{number}", drawn.arrays, drawn.seed), drawn)
        for number, drawn in enumerate(made.pair)
    )
    return Fixture(made.label, (first, second))
