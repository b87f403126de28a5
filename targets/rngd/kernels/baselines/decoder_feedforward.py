from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def look_up(codes, table):
    return commit(fetch.table_lookup(codes, table))


@tcl.tensor_operation
def widen(weights):
    return commit.typecast(fetch.typecast(weights, tcl.f32), tcl.bf16)


@tcl.tensor_operation
def project(weights, x, to):
    return commit(operation.contract(weights, x, to=to))


@tcl.tensor_operation
def multiply(left, right, dtype):
    product = operation.mulf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(product, dtype)


@tcl.tensor_operation
def divide(left, right):
    return commit(operation.divf(fetch.typecast(left, tcl.f32), right))


@tcl.tensor_operation
def add(left, right, dtype):
    total = operation.addf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(total, dtype)


@tcl.tensor_operation
def root_mean_square(x, axes, n):
    wide = fetch.typecast(x, tcl.f32)
    total = operation.reduce(operation.mulf(wide, wide), axes=axes, op=tcl.Addf)
    mean = operation.mulf(total, 1.0 / n)
    return commit(operation.sqrt(operation.addf(mean, 1e-6)))


@tcl.tensor_operation
def gelu(x):
    wide = fetch.typecast(x, tcl.f32)
    raised = operation.addf(operation.erf(operation.mulf(wide, 0.7071067811865476)), 1.0)
    return commit(operation.mulf(operation.mulf(raised, 0.5), wide))


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
    Codes = tcl.Axis(16)
    Block = tcl.Axis(16)
    values: tcl.Tensor[tcl.bf16, [Codes]] = tcl.vector(
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    )

    size = root_mean_square(residual, [H], 3840)
    normed = divide(residual, size)
    xn = multiply(normed, w_pre, tcl.bf16)

    UpTiles = tcl.Axis(60)
    UpRows = tcl.Axis(256)
    up_tiles = tcl.reshape(w_up, to=[UpTiles, UpRows, HP])
    up_scale_tiles = tcl.reshape(s_up, to=[UpTiles, UpRows, HB])
    up_rows: tcl.MutTensor[tcl.f32, [UpTiles, UpRows]] = tcl.scratchpad()
    for i in tcl.range(0, 60):
        up_packed = tcl.index_read(up_tiles, i, axis=UpTiles)
        up_scale_codes = tcl.index_read(up_scale_tiles, i, axis=UpTiles)
        up_codes: tcl.Tensor[tcl.f4_e2, [UpRows, H]] = tcl.transmute(up_packed)
        up_decoded = look_up(up_codes, values)
        up_blocks = tcl.reshape(up_decoded, to=[UpRows, HB, Block])
        up_scale = widen(up_scale_codes)
        up_scaled = multiply(up_blocks, up_scale, tcl.bf16)
        up_weights = tcl.reshape(up_scaled, to=[UpRows, H])
        up_part = project(up_weights, xn, [UpRows])
        tcl.index_write(up_rows, i, up_part, axis=UpTiles)
    up_raw = tcl.reshape(up_rows, to=[L])
    up_global: tcl.Tensor[tcl.f32, []] = tcl.slice(globals, G, 0)
    up = multiply(up_raw, up_global, tcl.f32)

    GateTiles = tcl.Axis(60)
    GateRows = tcl.Axis(256)
    gate_tiles = tcl.reshape(w_gate, to=[GateTiles, GateRows, HP])
    gate_scale_tiles = tcl.reshape(s_gate, to=[GateTiles, GateRows, HB])
    gate_rows: tcl.MutTensor[tcl.f32, [GateTiles, GateRows]] = tcl.scratchpad()
    for i in tcl.range(0, 60):
        gate_packed = tcl.index_read(gate_tiles, i, axis=GateTiles)
        gate_scale_codes = tcl.index_read(gate_scale_tiles, i, axis=GateTiles)
        gate_codes: tcl.Tensor[tcl.f4_e2, [GateRows, H]] = tcl.transmute(gate_packed)
        gate_decoded = look_up(gate_codes, values)
        gate_blocks = tcl.reshape(gate_decoded, to=[GateRows, HB, Block])
        gate_scale = widen(gate_scale_codes)
        gate_scaled = multiply(gate_blocks, gate_scale, tcl.bf16)
        gate_weights = tcl.reshape(gate_scaled, to=[GateRows, H])
        gate_part = project(gate_weights, xn, [GateRows])
        tcl.index_write(gate_rows, i, gate_part, axis=GateTiles)
    gate_raw = tcl.reshape(gate_rows, to=[L])
    gate_global: tcl.Tensor[tcl.f32, []] = tcl.slice(globals, G, 1)
    gate = multiply(gate_raw, gate_global, tcl.f32)

    active = gelu(gate)
    hidden = multiply(up, active, tcl.bf16)

    DownTiles = tcl.Axis(60)
    DownRows = tcl.Axis(64)
    down_tiles = tcl.reshape(w_down, to=[DownTiles, DownRows, LP])
    down_scale_tiles = tcl.reshape(s_down, to=[DownTiles, DownRows, LB])
    down_rows: tcl.MutTensor[tcl.f32, [DownTiles, DownRows]] = tcl.scratchpad()
    for i in tcl.range(0, 60):
        down_packed = tcl.index_read(down_tiles, i, axis=DownTiles)
        down_scale_codes = tcl.index_read(down_scale_tiles, i, axis=DownTiles)
        down_codes: tcl.Tensor[tcl.f4_e2, [DownRows, L]] = tcl.transmute(down_packed)
        down_decoded = look_up(down_codes, values)
        down_blocks = tcl.reshape(down_decoded, to=[DownRows, LB, Block])
        down_scale = widen(down_scale_codes)
        down_scaled = multiply(down_blocks, down_scale, tcl.bf16)
        down_weights = tcl.reshape(down_scaled, to=[DownRows, L])
        down_part = project(down_weights, hidden, [DownRows])
        tcl.index_write(down_rows, i, down_part, axis=DownTiles)
    down_raw = tcl.reshape(down_rows, to=[H])
    down_global: tcl.Tensor[tcl.f32, []] = tcl.slice(globals, G, 2)
    down = multiply(down_raw, down_global, tcl.f32)

    down_size = root_mean_square(down, [H], 3840)
    down_normed = divide(down, down_size)
    y = multiply(down_normed, w_post, tcl.f32)
    total = add(y, residual, tcl.f32)
    factor: tcl.Tensor[tcl.bf16, []] = tcl.slice(layer_scalar, N, 0)
    return multiply(total, factor, tcl.bf16)
