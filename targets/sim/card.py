"""What an author is told of a kernel: its mathematics, its arguments, the language's manual."""

from functools import lru_cache
from importlib.resources import files
from typing import Final

from sim.npu.kernels import SIGNATURES
from targets.gemma4.kernels import kernel
from targets.gemma4.mathematics import MATHEMATICS
from targets.protocol import Card


@lru_cache
def card(name: str) -> Card:
    """Describe a kernel; the same text for every version of the toolchain.

    Raises:
        TargetError: no such kernel; the text lists the known ones.
    """
    facts = kernel(name, "full")
    task = _TASK.format(
        name=name,
        mathematics=MATHEMATICS[name],
        sizes=", ".join(f"{symbol} = {size}" for symbol, size in facts.dims.items()),
        arguments="\n".join(f"    {a.name}: {a}" for a in SIGNATURES[name].arguments),
        atol=facts.atol,
        rtol=facts.rtol,
        weight_bytes=facts.weight_bytes,
        manual=manual(),
    )
    return Card(task, facts.weight_bytes)


def manual() -> str:
    """Return the manual of the NPU and its language, Markdown."""
    return files("targets.sim").joinpath("manual.md").read_text("utf-8")


_TASK: Final = """\
Kernel {name}: write `kernel {name}` in the language of the NPU, whose manual follows.

Mathematics (products of two vectors are element by element):
{mathematics}
rmsnorm(t) = t / sqrt(mean(t*t) + 1e-6), the mean over all elements of t.
Sizes: {sizes}.

Arguments, each to be declared with its own name, dtype, extents and part:
{arguments}
A vector of QS or PS elements above is a matrix of heads by DS here.

Correct means: every output is finite and |output - exact| <= {atol} + {rtol} * |exact|, where
exact is computed in float64 with no rounding in between. It is checked with several
distributions of the inputs, amplitudes from 0.001 to 16, outliers, the smallest and the largest
codes. Activations in 8 bits are not accurate enough; bf16 or several pieces of f8e4m3 can be.

Fast means: the shortest time of one launch on the device. Every launch must move {weight_bytes}
bytes of weights from HBM; the bound is the time of the fastest kernel that only loads them.

{manual}"""
