"""What an author is given: the text of ``kernel.h`` and of the task."""

from collections.abc import Mapping
from typing import Final

from targets.gemma4.kernels import Buffer, DType, Kernel

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
        mathematics=_MATHEMATICS[kernel.name],
        header=header(kernel),
        atol=kernel.atol,
        rtol=kernel.rtol,
        weight_bytes=kernel.weight_bytes,
    )


_MATHEMATICS: Final = {
    "sliding_project_qkv": """\
xn = rmsnorm(x) * w_rms
q[i] = sq[i] * sum_j wq[i][j] * xn[j]     for i in 0..QS-1
k[i] = sk[i] * sum_j wk[i][j] * xn[j]     for i in 0..PS-1
v[i] = sv[i] * sum_j wv[i][j] * xn[j]     for i in 0..PS-1
For every head, that is every DS consecutive elements of q, k and v:
    q_head = rope(rmsnorm(q_head) * q_rms)
    k_head = rope(rmsnorm(k_head) * k_rms)
    v_head = rmsnorm(v_head)
rope(t)[i] = t[i] * cos_row[i] + t[(i + DS/2) % DS] * sin_row[i]
    (the table's sine already carries the sign)
cos_row and sin_row are the DS elements that start offsets[0] BYTES into cos and sin.
q goes to q_out. k and v go to the PS elements that start offsets[1] BYTES into k_cache and
v_cache, which are rings of TS rows; every other row must stay as it is, bit for bit.""",
    "sliding_attention_output": """\
y[i] = so[i] * sum_j wo[i][j] * x[j]      for i in 0..H-1, j in 0..QS-1
residual = residual + rmsnorm(y) * w_post""",
    "decoder_feedforward": """\
xn = rmsnorm(residual) * w_pre
up[i]   = globals[0] * sum_j w_up[i][j]   * s_up[i][j/16]   * xn[j]    for i in 0..L-1
gate[i] = globals[1] * sum_j w_gate[i][j] * s_gate[i][j/16] * xn[j]    for i in 0..L-1
h[i]    = up[i] * gelu(gate[i]),  gelu(z) = z/2 * (1 + erf(z / sqrt(2)))
down[i] = globals[2] * sum_j w_down[i][j] * s_down[i][j/16] * h[j]     for i in 0..H-1
y = rmsnorm(down) * w_post
residual = (residual + y) * layer_scalar[0]
Every 16 consecutive weights of a row share one scale; scales are finite and not negative.""",
}

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
