"""What the kernels compute, in words for authors; `targets.gemma4.reference` has the code."""

from collections.abc import Mapping
from typing import Final

from targets.gemma4.kernels import KERNELS

_QKV: Final = """\
For every head, that is every DS consecutive elements of q, k and v:
    q_head = rope(rmsnorm(q_head) * q_rms)
    k_head = rope(rmsnorm(k_head) * k_rms)
    v_head = rmsnorm(v_head)
rope(t)[i] = t[i] * cos_row[i] + t[(i + DS/2) % DS] * sin_row[i]
    (the table's sine already carries the sign)"""
_OUTPUT: Final = "residual = residual + rmsnorm(y) * w_post"

FORMULAS: Final[Mapping[str, str]] = {
    "sliding_project_qkv": f"""\
xn = rmsnorm(x) * w_rms
q[i] = sq[i] * sum_j wq[i][j] * xn[j]     for i in 0..QS-1
k[i] = sk[i] * sum_j wk[i][j] * xn[j]     for i in 0..PS-1
v[i] = sv[i] * sum_j wv[i][j] * xn[j]     for i in 0..PS-1
{_QKV}""",
    "sliding_attention_output": f"""\
y[i] = so[i] * sum_j wo[i][j] * x[j]      for i in 0..H-1, j in 0..QS-1
{_OUTPUT}""",
    "decoder_feedforward": """\
xn = rmsnorm(residual) * w_pre
up[i]   = globals[0] * sum_j w_up[i][j]   * s_up[i][j/16]   * xn[j]    for i in 0..L-1
gate[i] = globals[1] * sum_j w_gate[i][j] * s_gate[i][j/16] * xn[j]    for i in 0..L-1
h[i]    = up[i] * gelu(gate[i]),  gelu(z) = z/2 * (1 + erf(z / sqrt(2)))
down[i] = globals[2] * sum_j w_down[i][j] * s_down[i][j/16] * h[j]     for i in 0..H-1
y = rmsnorm(down) * w_post
residual = (residual + y) * layer_scalar[0]
Every 16 consecutive weights of a row share one scale; scales are finite and not negative.""",
    "sliding_project_qkv_mxfp4": f"""\
xn = rmsnorm(x) * w_rms
q[i] = sum_j wq[i][j] * sq[i][j/32] * xn[j]     for i in 0..QS-1
k[i] = sum_j wk[i][j] * sk[i][j/32] * xn[j]     for i in 0..PS-1
v[i] = sum_j wv[i][j] * sv[i][j/32] * xn[j]     for i in 0..PS-1
Every 32 consecutive weights of a row share one scale, a power of two.
{_QKV}""",
    "sliding_attention_output_mxfp4": f"""\
y[i] = sum_j wo[i][j] * so[i][j/32] * x[j]      for i in 0..H-1, j in 0..QS-1
Every 32 consecutive weights of a row share one scale, a power of two.
{_OUTPUT}""",
}
"""By kernel; products of two vectors are element by element, sizes as in `Kernel.dims`."""

_BY_OFFSETS: Final = """
cos_row and sin_row are the DS elements that start offsets[0] BYTES into cos and sin.
q goes to q_out. k and v go to the PS elements that start offsets[1] BYTES into k_cache and
v_cache, which are rings of TS rows; every other row must stay as it is, bit for bit."""

MATHEMATICS: Final[Mapping[str, str]] = {
    **{name: FORMULAS[name] for name in KERNELS},
    "sliding_project_qkv": FORMULAS["sliding_project_qkv"] + _BY_OFFSETS,
}
"""The formulas, and where things are for targets that pass offsets in bytes."""
