from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def add(left, right, dtype):
    total = operation.addf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(total, dtype)


@tcl.tensor_operation
def number(code):
    return commit.typecast(operation.to_float(fetch.typecast(code, tcl.i32)), tcl.bf16)


@tcl.kernel(bindings={"H": 3840, "QS": 4096, "QP": 2048, "QB": 128}, strict=True)
def sliding_attention_output_mxfp4(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.u8, [H, QP]],
    so: tcl.Tensor[tcl.u8, [H, QB]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    x_loaded = tcl.load(x)
    x_first: tcl.Tensor[tcl.bf16, []] = tcl.slice(x_loaded, QS, 0)
    vectors = add(residual, w_post, tcl.bf16)
    small = add(vectors, x_first, tcl.bf16)
    so_loaded = tcl.load(so)
    so_codes: tcl.Tensor[tcl.u8, [H]] = tcl.slice(so_loaded, QB, 0)
    so_bytes: tcl.Tensor[tcl.i8, [H]] = tcl.transmute(so_codes)
    so_column = number(so_bytes)
    scaled = add(so_column, small, tcl.bf16)
    wo_loaded = tcl.load(wo)
    wo_codes: tcl.Tensor[tcl.u8, [H]] = tcl.slice(wo_loaded, QP, 0)
    wo_bytes: tcl.Tensor[tcl.i8, [H]] = tcl.transmute(wo_codes)
    wo_column = number(wo_bytes)
    return add(wo_column, scaled, tcl.bf16)
