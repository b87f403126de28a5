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


@tcl.kernel(
    bindings={
        "H": 3840,
        "HP": 1920,
        "HB": 240,
        "L": 15360,
        "LP": 7680,
        "LB": 960,
        "G": 3,
        "N": 1,
    },
    strict=True,
)
def decoder_feedforward(
    residual: tcl.Tensor[tcl.bf16, [H]],
    w_pre: tcl.Tensor[tcl.bf16, [H]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    w_up: tcl.Tensor[tcl.u8, [L, HP]],
    w_gate: tcl.Tensor[tcl.u8, [L, HP]],
    w_down: tcl.Tensor[tcl.u8, [H, LP]],
    s_up: tcl.Tensor[tcl.f8_e4, [L, HB]],
    s_gate: tcl.Tensor[tcl.f8_e4, [L, HB]],
    s_down: tcl.Tensor[tcl.f8_e4, [H, LB]],
    globals: tcl.Tensor[tcl.f32, [G]],
    layer_scalar: tcl.Tensor[tcl.bf16, [N]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    vectors = add(residual, w_pre, tcl.bf16)
    all_vectors = add(vectors, w_post, tcl.bf16)
    globals_loaded = tcl.load(globals)
    global_first: tcl.Tensor[tcl.f32, []] = tcl.slice(globals_loaded, G, 0)
    factor: tcl.Tensor[tcl.bf16, []] = tcl.slice(layer_scalar, N, 0)
    scalars = add(global_first, factor, tcl.bf16)
    small = add(all_vectors, scalars, tcl.bf16)

    s_up_loaded = tcl.load(s_up)
    w_up_loaded = tcl.load(w_up)
    s_up_column: tcl.Tensor[tcl.f8_e4, [L]] = tcl.slice(s_up_loaded, HB, 0)
    w_up_codes: tcl.Tensor[tcl.u8, [L]] = tcl.slice(w_up_loaded, HP, 0)
    w_up_bytes: tcl.Tensor[tcl.i8, [L]] = tcl.transmute(w_up_codes)
    w_up_column = number(w_up_bytes)
    up = add(s_up_column, w_up_column, tcl.bf16)
    up_first: tcl.Tensor[tcl.bf16, []] = tcl.slice(up, L, 0)

    s_gate_loaded = tcl.load(s_gate)
    w_gate_loaded = tcl.load(w_gate)
    s_gate_column: tcl.Tensor[tcl.f8_e4, [L]] = tcl.slice(s_gate_loaded, HB, 0)
    w_gate_codes: tcl.Tensor[tcl.u8, [L]] = tcl.slice(w_gate_loaded, HP, 0)
    w_gate_bytes: tcl.Tensor[tcl.i8, [L]] = tcl.transmute(w_gate_codes)
    w_gate_column = number(w_gate_bytes)
    gate = add(s_gate_column, w_gate_column, tcl.bf16)
    gate_first: tcl.Tensor[tcl.bf16, []] = tcl.slice(gate, L, 0)

    s_down_loaded = tcl.load(s_down)
    w_down_loaded = tcl.load(w_down)
    s_down_column: tcl.Tensor[tcl.f8_e4, [H]] = tcl.slice(s_down_loaded, LB, 0)
    w_down_codes: tcl.Tensor[tcl.u8, [H]] = tcl.slice(w_down_loaded, LP, 0)
    w_down_bytes: tcl.Tensor[tcl.i8, [H]] = tcl.transmute(w_down_codes)
    w_down_column = number(w_down_bytes)
    down = add(s_down_column, w_down_column, tcl.bf16)

    inner = add(up_first, gate_first, tcl.bf16)
    outer = add(small, inner, tcl.bf16)
    return add(down, outer, tcl.bf16)
