from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


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
def divide(left, right, dtype):
    ratio = operation.divf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(ratio, dtype)


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


@tcl.kernel(
    bindings={
        "H": 3840,
        "QS": 4096,
        "PS": 2048,
        "DS": 256,
        "E": 32768,
        "TS": 1024,
        "N": 1,
    },
    strict=True,
)
def sliding_project_qkv(
    x: tcl.Tensor[tcl.bf16, [H]],
    w_rms: tcl.Tensor[tcl.bf16, [H]],
    wq: tcl.Tensor[tcl.f8_e4, [QS, H]],
    wk: tcl.Tensor[tcl.f8_e4, [PS, H]],
    wv: tcl.Tensor[tcl.f8_e4, [PS, H]],
    sq: tcl.Tensor[tcl.bf16, [QS]],
    sk: tcl.Tensor[tcl.bf16, [PS]],
    sv: tcl.Tensor[tcl.bf16, [PS]],
    q_rms: tcl.Tensor[tcl.bf16, [DS]],
    k_rms: tcl.Tensor[tcl.bf16, [DS]],
    cos: tcl.Tensor[tcl.bf16, [E, DS]],
    sin: tcl.Tensor[tcl.bf16, [E, DS]],
    rope_row: tcl.Tensor[tcl.i32, [N]],
    cache_row: tcl.Tensor[tcl.i32, [N]],
    k_cache: tcl.MutTensor[tcl.bf16, [TS, PS]],
    v_cache: tcl.MutTensor[tcl.bf16, [TS, PS]],
) -> tcl.Tensor[tcl.bf16, [QS]]:
    size = root_mean_square(x, [H], 3840)
    normed = divide(x, size, tcl.f32)
    xn = multiply(normed, w_rms, tcl.bf16)

    QTiles = tcl.Axis(16)
    QRows = tcl.Axis(256)
    q_tiles = tcl.reshape(wq, to=[QTiles, QRows, H])
    q_rows: tcl.MutTensor[tcl.f32, [QTiles, QRows]] = tcl.scratchpad()
    for i in tcl.range(0, 16):
        q_tile = tcl.index_read(q_tiles, i, axis=QTiles)
        q_wide = widen(q_tile)
        q_part = project(q_wide, xn, [QRows])
        tcl.index_write(q_rows, i, q_part, axis=QTiles)
    q_raw = tcl.reshape(q_rows, to=[QS])
    q_flat = multiply(q_raw, sq, tcl.f32)

    KTiles = tcl.Axis(16)
    KRows = tcl.Axis(128)
    k_tiles = tcl.reshape(wk, to=[KTiles, KRows, H])
    k_rows: tcl.MutTensor[tcl.f32, [KTiles, KRows]] = tcl.scratchpad()
    for i in tcl.range(0, 16):
        k_tile = tcl.index_read(k_tiles, i, axis=KTiles)
        k_wide = widen(k_tile)
        k_part = project(k_wide, xn, [KRows])
        tcl.index_write(k_rows, i, k_part, axis=KTiles)
    k_raw = tcl.reshape(k_rows, to=[PS])
    k_flat = multiply(k_raw, sk, tcl.f32)

    VTiles = tcl.Axis(16)
    VRows = tcl.Axis(128)
    v_tiles = tcl.reshape(wv, to=[VTiles, VRows, H])
    v_rows: tcl.MutTensor[tcl.f32, [VTiles, VRows]] = tcl.scratchpad()
    for i in tcl.range(0, 16):
        v_tile = tcl.index_read(v_tiles, i, axis=VTiles)
        v_wide = widen(v_tile)
        v_part = project(v_wide, xn, [VRows])
        tcl.index_write(v_rows, i, v_part, axis=VTiles)
    v_raw = tcl.reshape(v_rows, to=[PS])
    v_flat = multiply(v_raw, sv, tcl.f32)

    QHeads = tcl.Axis(16)
    KHeads = tcl.Axis(8)
    Halves = tcl.Axis(2)
    Half = tcl.Axis(128)
    cos_row = tcl.gather(cos, rope_row, E)
    sin_row = tcl.gather(sin, rope_row, E)
    cosine = tcl.reshape(cos_row, to=[DS])
    sine = tcl.reshape(sin_row, to=[DS])

    q = tcl.reshape(q_flat, to=[QHeads, DS])
    q_size = root_mean_square(q, [DS], 256)
    q_normed = divide(q, q_size, tcl.f32)
    q_head = multiply(q_normed, q_rms, tcl.f32)
    q_halves = tcl.reshape(q_head, to=[QHeads, Halves, Half])
    q_low: tcl.Tensor[tcl.f32, [QHeads, Half]] = tcl.slice(q_halves, Halves, 0)
    q_high: tcl.Tensor[tcl.f32, [QHeads, Half]] = tcl.slice(q_halves, Halves, 1)
    q_pair: tcl.Tensor[tcl.f32, [QHeads, Halves, Half]] = tcl.concat([q_high, q_low])
    q_swapped = tcl.reshape(q_pair, to=[QHeads, DS])
    q_cos = multiply(q_head, cosine, tcl.f32)
    q_sin = multiply(q_swapped, sine, tcl.f32)
    q_turned = add(q_cos, q_sin, tcl.bf16)
    q_out = tcl.reshape(q_turned, to=[QS])

    k = tcl.reshape(k_flat, to=[KHeads, DS])
    k_size = root_mean_square(k, [DS], 256)
    k_normed = divide(k, k_size, tcl.f32)
    k_head = multiply(k_normed, k_rms, tcl.f32)
    k_halves = tcl.reshape(k_head, to=[KHeads, Halves, Half])
    k_low: tcl.Tensor[tcl.f32, [KHeads, Half]] = tcl.slice(k_halves, Halves, 0)
    k_high: tcl.Tensor[tcl.f32, [KHeads, Half]] = tcl.slice(k_halves, Halves, 1)
    k_pair: tcl.Tensor[tcl.f32, [KHeads, Halves, Half]] = tcl.concat([k_high, k_low])
    k_swapped = tcl.reshape(k_pair, to=[KHeads, DS])
    k_cos = multiply(k_head, cosine, tcl.f32)
    k_sin = multiply(k_swapped, sine, tcl.f32)
    k_turned = add(k_cos, k_sin, tcl.bf16)
    k_new = tcl.reshape(k_turned, to=[N, PS])

    v = tcl.reshape(v_flat, to=[KHeads, DS])
    v_size = root_mean_square(v, [DS], 256)
    v_normed = divide(v, v_size, tcl.bf16)
    v_new = tcl.reshape(v_normed, to=[N, PS])

    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)
    v_updated = tcl.scatter(v_new, cache_row, TS, init=v_cache)
    k_cache.copy_(k_updated)
    v_cache.copy_(v_updated)
    return q_out
