from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def add(left, right, dtype):
    total = operation.addf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(total, dtype)


@tcl.kernel(bindings={"H": 3840, "QS": 4096}, strict=True)
def sliding_attention_output(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.f8_e4, [H, QS]],
    so: tcl.Tensor[tcl.bf16, [H]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    x_loaded = tcl.load(x)
    x_first: tcl.Tensor[tcl.bf16, []] = tcl.slice(x_loaded, QS, 0)
    vectors = add(residual, so, tcl.bf16)
    all_vectors = add(vectors, w_post, tcl.bf16)
    small = add(all_vectors, x_first, tcl.bf16)
    wo_loaded = tcl.load(wo)
    wo_column: tcl.Tensor[tcl.f8_e4, [H]] = tcl.slice(wo_loaded, QS, 0)
    return add(wo_column, small, tcl.bf16)
