"""What to do about those messages of the toolchain that do not say it."""

import re
from typing import Final

_ADVICE: Final = (
    (
        r"has no attribute 'copy_'",
        "only a tensor that is declared mutable (tcl.MutTensor) can be written in place",
    ),
    (
        r"axis already declared|already declared",
        "sizes are named after their line in the source: declare one tcl.Axis a line",
    ),
    (
        r"is not an npu execution input",
        "a parameter is not used by any operation: every parameter must be",
    ),
    (
        r"no compilable tactic|[Nn]o tactic",
        "no way to lay this operation out was found: a layout hint may name an axis that the "
        "operation has not, or an axis is too short or has no even split",
    ),
    (
        r"unsupported assert expression",
        "a static_assert does not hold for the sizes that the kernel is bound to",
    ),
    (
        r"copy dst T\d+ and src T\d+ must be compatible",
        "what is copied into a parameter must lie in DRAM: store it first, or write it by scatter",
    ),
    (
        r"mainstream",
        "one operand runs through the whole fused operation (the first one read, or what a "
        "contraction gives); the others join it, and cannot be its first operand later",
    ),
    (
        r"parse error",
        "the compiler does not know a word here: a hint or a population mode may be unknown, or a "
        "name may begin with a word of its own language",
    ),
    (
        r"unsupported type conversion",
        "4-bit operands cannot be contracted: look them up in a table of 16 values first",
    ),
)


def advice(message: str) -> str:
    """Return advice on a message, "" where it is clear or nobody knows better."""
    return next((told for pattern, told in _ADVICE if re.search(pattern, message)), "")
