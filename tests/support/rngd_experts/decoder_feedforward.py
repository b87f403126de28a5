from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def one_over_rms(x, axes, share, epsilon):
    wide = fetch.typecast(x, tcl.f32)
    mean = operation.mulf(operation.reduce(operation.mulf(wide, wide), axes=axes), share)
    return commit(operation.divf(1.0, operation.sqrt(operation.addf(mean, epsilon))))


@tcl.tensor_operation
def prenorm(x, inverse, weight):
    wide = fetch.typecast(x, tcl.f32)
    return commit(operation.mulf(operation.mulf(wide, inverse), weight))


@tcl.tensor_operation
def gated(codes, f4, scales, x, size, axes):
    dot = operation.mulf(
        operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales), x
    )
    z = operation.mulf(operation.reduce(dot, axes=axes), size)
    phi = operation.addf(operation.erf(operation.mulf(z, 0.70710678118654752)), 1.0)
    return commit(operation.mulf(operation.mulf(phi, 0.5), z))


@tcl.tensor_operation
def times_gate(codes, f4, scales, x, gate, axes):
    dot = operation.mulf(
        operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales), x
    )
    return commit(operation.mulf(operation.reduce(dot, axes=axes), gate))


@tcl.tensor_operation
def dots(codes, f4, scales, x, axes):
    dot = operation.mulf(
        operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales), x
    )
    return commit(operation.reduce(dot, axes=axes))


@tcl.tensor_operation
def more_dots(codes, f4, scales, x, before, axes):
    dot = operation.mulf(
        operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales), x
    )
    return commit(operation.addf(operation.reduce(dot, axes=axes), before))


# down has not been multiplied by s = global_up * global_down; its norm is the same with an
# epsilon of 1e-6 / s**2, and so both globals are needed only behind the weights.
@tcl.tensor_operation
def scaled_epsilon(up, down):
    s = operation.mulf(up, down)
    return commit(operation.divf(1e-6, operation.mulf(s, s)))


@tcl.tensor_operation
def finish(down, inverse, weight, residual, scalar):
    y = operation.mulf(operation.mulf(down, inverse), weight)
    return commit.typecast(operation.mulf(operation.addf(y, residual), scalar), tcl.bf16)


@tcl.kernel(
    bindings={"H": 3840, "HP": 1920, "HB": 240, "L": 15360, "LP": 7680, "LB": 960, "G": 3, "N": 1},
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
    Sixteen = tcl.Axis(16)
    Block = tcl.Axis(16)
    Early = tcl.Axis(896)
    EarlyBytes = tcl.Axis(7168)
    EarlyColumns = tcl.Axis(14336)
    Late = tcl.Axis(64)
    LateBytes = tcl.Axis(512)
    LateColumns = tcl.Axis(1024)
    f4: tcl.Tensor[tcl.bf16, [Sixteen]] = tcl.vector(
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    )
    r = tcl.load(residual)
    g = tcl.load(globals)
    global_up: tcl.Tensor[tcl.f32, []] = tcl.slice(g, G, 0)
    global_gate: tcl.Tensor[tcl.f32, []] = tcl.slice(g, G, 1)
    global_down: tcl.Tensor[tcl.f32, []] = tcl.slice(g, G, 2)
    scalar: tcl.Tensor[tcl.bf16, []] = tcl.slice(layer_scalar, N, 0)
    size = one_over_rms(r, [H], 1 / 3840, 1e-6)
    xn = prenorm(r, size, w_pre)
    x = tcl.reshape(xn, to=[HB, Block])

    gate_codes: tcl.Tensor[tcl.f4_e2, [L, H]] = tcl.transmute(w_gate)
    gate_blocks = tcl.reshape(gate_codes, to=[L, HB, Block])
    gate = gated(gate_blocks, f4, s_gate, x, global_gate, [HB, Block])
    up_codes: tcl.Tensor[tcl.f4_e2, [L, H]] = tcl.transmute(w_up)
    up_blocks = tcl.reshape(up_codes, to=[L, HB, Block])
    flat = times_gate(up_blocks, f4, s_up, x, gate, [HB, Block])
    hidden = tcl.reshape(flat, to=[LB, Block])

    scales = tcl.load(s_down)
    early_bytes = tcl.slice(w_down, LP, 0, output_axis=EarlyBytes)
    early_codes: tcl.Tensor[tcl.f4_e2, [H, EarlyColumns]] = tcl.transmute(early_bytes)
    early_blocks = tcl.reshape(early_codes, to=[H, Early, Block])
    early_scales = tcl.slice(scales, LB, 0, output_axis=Early)
    early_hidden = tcl.slice(hidden, LB, 0, output_axis=Early)
    most = dots(early_blocks, f4, early_scales, early_hidden, [Early, Block])
    late_bytes = tcl.slice(w_down, LP, 7168, output_axis=LateBytes)
    late_codes: tcl.Tensor[tcl.f4_e2, [H, LateColumns]] = tcl.transmute(late_bytes)
    late_blocks = tcl.reshape(late_codes, to=[H, Late, Block])
    late_scales = tcl.slice(scales, LB, 896, output_axis=Late)
    late_hidden = tcl.slice(hidden, LB, 896, output_axis=Late)
    down = more_dots(late_blocks, f4, late_scales, late_hidden, most, [Late, Block])

    epsilon = scaled_epsilon(global_up, global_down)
    inverse = one_over_rms(down, [H], 1 / 3840, epsilon)
    return finish(down, inverse, w_post, r, scalar)
