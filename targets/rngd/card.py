"""What an author is told of a kernel: its mathematics, its outside, and where to read on."""

from collections.abc import Iterator
from typing import Final

from targets.gemma4.kernels import kernel
from targets.gemma4.mathematics import FORMULAS
from targets.protocol import Card
from targets.rngd.guard import MAX_VECTOR_OPERATIONS
from targets.rngd.task import Parameter, Task


def card(task: Task) -> Card:
    """Describe a kernel."""
    facts = kernel(task.name, "full")
    places = _ROWS if any(parameter.mutable for parameter in task.parameters) else _RESIDUAL
    text = _TASK.format(
        name=task.name,
        formulas=FORMULAS[task.name] + places,
        sizes=", ".join(f"{axis} = {size}" for axis, size in task.bindings.items()),
        formats="\n".join(_formats(task)),
        signature=signature(task),
        atol=facts.atol,
        rtol=facts.rtol,
        weight_bytes=task.weight_bytes,
        longest=MAX_VECTOR_OPERATIONS,
    )
    return Card(text, task.weight_bytes)


def signature(task: Task) -> str:
    """Return the begin of a source, up to the body of the kernel."""
    bindings = ", ".join(f'"{axis}": {size}' for axis, size in task.bindings.items())
    lines = [f"@tcl.kernel(bindings={{{bindings}}}, strict=True)", f"def {task.name}("]
    lines += [f"    {parameter.name}: {_annotation(parameter)}," for parameter in task.parameters]
    results = ", ".join(_annotation(result) for result in task.results)
    return "\n".join([*lines, f") -> {results}:"])


def _annotation(parameter: Parameter) -> str:
    kind = "MutTensor" if parameter.mutable else "Tensor"
    return f"tcl.{kind}[tcl.{parameter.dtype}, [{', '.join(parameter.axes)}]]"


def _formats(task: Task) -> Iterator[str]:
    """Say what a kernel's u8 parameters hold, as far as it has any."""
    blocks = [p.name for p in task.parameters if p.dtype == "u8" and p.axes[-1].endswith("B")]
    packed = [p.name for p in task.parameters if p.dtype == "u8" and p.axes[-1].endswith("P")]
    if packed:
        yield (
            f"- {', '.join(packed)}: weights in f4e2m1, two to a byte, the even index in the low\n"
            "  nibble; tcl.transmute makes f4_e2 of them. Codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4,\n"
            "  6, codes 8..15 the same negated."
        )
    if blocks:
        yield f"- {', '.join(blocks)}: scales; code c, 1 to 254, is 2^(c - 127)."
    yield "- All other parameters are what their formats say. Weights are [output][input]."


_RESIDUAL: Final = "\nThe new residual is returned."
_ROWS: Final = """
cos_row and sin_row are row rope_row[0] of cos and sin. q is returned. k and v go to row
cache_row[0] of k_cache and v_cache; every other row must stay as it is, bit for bit."""

_TASK: Final = """\
Kernel {name}: write one Python file that defines it in TCL, the tensor contraction
language of FuriosaAI's RNGD (package furiosa-kernels, module furiosa.tcl), for one chip of 8 PEs.

Mathematics (products of two vectors are element by element):
{formulas}
rmsnorm(t) = t / sqrt(mean(t*t) + 1e-6), the mean over all elements of t.
Sizes: {sizes}.

Formats:
{formats}

The file begins like this, and keeps names, formats, axes and bindings:

from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation

{signature}

Correct means: every output is finite and |output - exact| <= {atol} + {rtol} * |exact|, where
exact is computed in float64 with no rounding in between. It is checked with several
distributions of the inputs, amplitudes from 0.001 to 16, outliers, the smallest and the largest
codes. Activations in 8 bits are not accurate enough; bf16 is, where sums and norms stay in f32.

Fast means: few cycles. Every launch must move {weight_bytes} bytes of weights and scales from
DRAM; the bound is the cycles of a kernel that only loads what every launch must load.

Rules:
- The file defines one @tcl.kernel; helpers are @tcl.tensor_operation or plain functions.
- No compiler configuration, no imperative blocks (tcl.core), no extern kernels, no tcl.dump, no
  tcl.visa, no collectives, no layout over tcl.Chip: there is one chip.
- A fused operation has at most {longest} vector operations, and so have several that follow each
  other, from a contraction or what reduces to the next. What is live in SRAM must fit it.
- Every axis is declared on a line of its own, and every parameter is used.
- The file runs in a sandbox that sees Python and furiosa.tcl, but none of the vendor's kernels.

Where the language is documented: the docstrings of furiosa.tcl (its operations, tensor operations,
kernel and range), and the examples in furiosa.tcl.examples.
"""
