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
def scaled_dots(weights, x, rows, axes):
    wide = fetch.typecast(weights, tcl.f32)
    return commit(operation.mulf(operation.reduce(operation.mulf(wide, x), axes=axes), rows))


@tcl.tensor_operation
def dots(weights, x, axes):
    wide = fetch.typecast(weights, tcl.f32)
    return commit(operation.reduce(operation.mulf(wide, x), axes=axes))


@tcl.tensor_operation
def more_dots(weights, x, before, axes):
    wide = fetch.typecast(weights, tcl.f32)
    return commit(operation.addf(operation.reduce(operation.mulf(wide, x), axes=axes), before))


@tcl.tensor_operation
def scaled_one_over_rms(x, scales, axes):
    y = operation.mulf(x, scales)
    mean = operation.mulf(operation.reduce(operation.mulf(y, y), axes=axes), 1 / 256)
    return commit(operation.divf(1.0, operation.sqrt(operation.addf(mean, 1e-6))))


@tcl.tensor_operation
def scaled(x, scales, inverse):
    return commit.typecast(operation.mulf(operation.mulf(x, scales), inverse), tcl.bf16)


@tcl.tensor_operation
def weighted(x, inverse, weight):
    return commit(operation.mulf(operation.mulf(x, inverse), weight))


@tcl.tensor_operation
def multiply(x, y):
    return commit(operation.mulf(x, y))


@tcl.tensor_operation(tcl.Elementwise)
def turn(x, cosine, across):
    return commit.typecast(operation.addf(operation.mulf(x, cosine), across), tcl.bf16)


@tcl.kernel(
    bindings={"H": 3840, "QS": 4096, "PS": 2048, "DS": 256, "E": 32768, "TS": 1024, "N": 1},
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
    QHeads = tcl.Axis(16)
    Heads = tcl.Axis(8)
    Two = tcl.Axis(2)
    Half = tcl.Axis(128)
    Early = tcl.Axis(3328)
    Late = tcl.Axis(512)
    size = one_over_rms(x, [H], 1 / 3840, 1e-6)
    xn = prenorm(x, size, w_rms)
    cos_row = tcl.gather(cos, rope_row, E)
    sin_row = tcl.gather(sin, rope_row, E)
    cosine = tcl.reshape(cos_row, to=[DS])
    sine = tcl.reshape(sin_row, to=[DS])

    q = scaled_dots(wq, xn, sq, [H])
    q_heads = tcl.reshape(q, to=[QHeads, DS])
    q_inverse = one_over_rms(q_heads, [DS], 1 / 256, 1e-6)
    q_normed = weighted(q_heads, q_inverse, q_rms)
    q_halves = tcl.reshape(q_normed, to=[QHeads, Two, Half])
    q_low: tcl.Tensor[tcl.f32, [QHeads, Half]] = tcl.slice(q_halves, Two, 0)
    q_high: tcl.Tensor[tcl.f32, [QHeads, Half]] = tcl.slice(q_halves, Two, 1)
    q_pair: tcl.Tensor[tcl.f32, [QHeads, Two, Half]] = tcl.concat([q_high, q_low])
    q_swapped = tcl.reshape(q_pair, to=[QHeads, DS])
    q_across = multiply(q_swapped, sine)
    q_turned = turn(q_normed, cosine, q_across)

    k = scaled_dots(wk, xn, sk, [H])
    k_heads = tcl.reshape(k, to=[Heads, DS])
    k_inverse = one_over_rms(k_heads, [DS], 1 / 256, 1e-6)
    k_normed = weighted(k_heads, k_inverse, k_rms)
    k_halves = tcl.reshape(k_normed, to=[Heads, Two, Half])
    k_low: tcl.Tensor[tcl.f32, [Heads, Half]] = tcl.slice(k_halves, Two, 0)
    k_high: tcl.Tensor[tcl.f32, [Heads, Half]] = tcl.slice(k_halves, Two, 1)
    k_pair: tcl.Tensor[tcl.f32, [Heads, Two, Half]] = tcl.concat([k_high, k_low])
    k_swapped = tcl.reshape(k_pair, to=[Heads, DS])
    k_across = multiply(k_swapped, sine)
    k_turned = turn(k_normed, cosine, k_across)

    early_weights = tcl.slice(wv, H, 0, output_axis=Early)
    early_x = tcl.slice(xn, H, 0, output_axis=Early)
    most = dots(early_weights, early_x, [Early])
    late_weights = tcl.slice(wv, H, 3328, output_axis=Late)
    late_x = tcl.slice(xn, H, 3328, output_axis=Late)
    v = more_dots(late_weights, late_x, most, [Late])
    v_heads = tcl.reshape(v, to=[Heads, DS])
    sv_heads = tcl.reshape(sv, to=[Heads, DS])
    v_scales = tcl.load(sv_heads)
    v_inverse = scaled_one_over_rms(v_heads, v_scales, [DS])
    v_normed = scaled(v_heads, v_scales, v_inverse)

    k_new = tcl.reshape(k_turned, to=[N, PS])
    v_new = tcl.reshape(v_normed, to=[N, PS])
    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)
    v_updated = tcl.scatter(v_new, cache_row, TS, init=v_cache)
    k_cache.copy_(k_updated)
    v_cache.copy_(v_updated)
    return tcl.reshape(q_turned, to=[QS])
