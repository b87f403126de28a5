"""What an author is given: the text of ``kernel.h`` and of the task."""

from collections.abc import Mapping
from typing import Final

from targets.gemma4.kernels import Buffer, DType, Kernel
from targets.gemma4.mathematics import MATHEMATICS

_C_TYPES: Final[Mapping[DType, str]] = {
    "bf16": "uint16_t",
    "f8e4m3": "uint8_t",
    "f4e2m1": "uint8_t",
    "f32": "float",
    "i64": "int64_t",
}
_PARTS: Final = {
    "in": "read only",
    "weight": "read only",
    "inout": "updated in place",
    "out": "written",
    "scratch": "working memory",
}


def header(kernel: Kernel) -> str:
    """Return the text of ``kernel.h``: sizes, ``struct args`` and the prototype."""
    lines = ["#ifndef KERNEL_H", "#define KERNEL_H", "", "#include <stdint.h>", ""]
    lines += [f"#define {name} {size}" for name, size in kernel.dims.items()]
    lines += [
        "#define EPS 1e-6f",
        "",
        "/* Every buffer is aligned to 64 bytes. */",
        "struct args {",
    ]
    lines += [_field(buffer) for buffer in kernel.buffers]
    lines += ["};", "", "void kernel(const struct args *a);", "", "#endif", ""]
    return "\n".join(lines)


def _field(buffer: Buffer) -> str:
    const = "const " if buffer.part in ("in", "weight") else ""
    shape = "".join(f"[{n}]" for n in buffer.shape)
    packed = ", two codes a byte" if buffer.dtype == "f4e2m1" else ""
    comment = f"{buffer.dtype}{shape}{packed}; {_PARTS[buffer.part]}"
    return f"    {const}{_C_TYPES[buffer.dtype]} *{buffer.name}; /* {comment} */"


def task(kernel: Kernel) -> str:
    """Return all that an author needs: mathematics, formats, tolerance, buffers and rules."""
    return _TASK.format(
        name=kernel.name,
        mathematics=MATHEMATICS[kernel.name],
        header=header(kernel),
        atol=kernel.atol,
        rtol=kernel.rtol,
        weight_bytes=kernel.weight_bytes,
    )


_TASK: Final = """\
Kernel {name}: write C11 for one core that defines `void kernel(const struct args *a)`.

Mathematics (products of two vectors are element by element):
{mathematics}
rmsnorm(t) = t / sqrt(mean(t*t) + EPS), the mean over all elements of t.

Formats:
- bf16: the upper 16 bits of a float32. Outputs are rounded to nearest, ties to even.
- f8e4m3: bit 7 sign, bits 6-3 exponent e (bias 7), bits 2-0 mantissa m. Value: e > 0:
  (1 + m/8) * 2^(e-7); e = 0: m/8 * 2^-6. No infinities; 0x7f and 0xff are NaN and never occur.
- f4e2m1: bit 3 sign; codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6. Two codes a byte, row by row:
  the low nibble has the even index, the high nibble the odd one.
- All arrays are row-major without padding; weights are [output][input].

kernel.h:
{header}
Correct means: every output is finite and |output - exact| <= {atol} + {rtol} * |exact|, where
exact is computed in float64 with no rounding in between. It is checked with several
distributions of the inputs, amplitudes from 0.001 to 16, outliers, the smallest and the largest
codes. Activations in 8 bits are not accurate enough; bf16 or 16-bit fixed point can be.

Fast means: the shortest time of one call. Every launch must read {weight_bytes} bytes of weights,
which it finds in main memory, not in a cache; the bound is the time to read them.

Rules:
- Include only "kernel.h", <stdint.h>, <stddef.h>, <string.h>, <math.h>, <immintrin.h> (x86) or
  <arm_neon.h> (ARM).
- No inline assembly, no writable static data, no threads, no system calls; of the C library only
  memcpy, memset, memmove and the functions of <math.h>.
- No state is kept between calls; scratch and the stack, which has 512 KiB, are overwritten before
  each.
- Read-only buffers must not be written, and nothing may be read or written outside the buffers.
- Compiler flags are fixed, without fast-math: the compiler does not reorder sums.
"""
