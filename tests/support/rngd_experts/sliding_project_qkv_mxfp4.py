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
def e8m0(code):
    exponent = operation.shl(operation.bit_andi(fetch.typecast(code, tcl.i32), 255), 23)
    return commit.typecast(operation.reinterpret_as_float(exponent), tcl.bf16)


@tcl.tensor_operation
def dots(codes, f4, scales, x, axes):
    dot = operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales)
    return commit(operation.reduce(operation.mulf(dot, x), axes=axes))


@tcl.tensor_operation
def weighted(x, inverse, weight):
    return commit(operation.mulf(operation.mulf(x, inverse), weight))


@tcl.tensor_operation
def multiply(x, y):
    return commit(operation.mulf(x, y))


@tcl.tensor_operation(tcl.Elementwise)
def turn(x, cosine, across):
    return commit.typecast(operation.addf(operation.mulf(x, cosine), across), tcl.bf16)


@tcl.tensor_operation
def narrowed(x, inverse):
    return commit.typecast(operation.mulf(x, inverse), tcl.bf16)


@tcl.kernel(
    bindings={
        "H": 3840,
        "HP": 1920,
        "HB": 120,
        "QS": 4096,
        "PS": 2048,
        "DS": 256,
        "E": 32768,
        "TS": 1024,
        "N": 1,
    },
    strict=True,
)
def sliding_project_qkv_mxfp4(
    x: tcl.Tensor[tcl.bf16, [H]],
    w_rms: tcl.Tensor[tcl.bf16, [H]],
    wq: tcl.Tensor[tcl.u8, [QS, HP]],
    wk: tcl.Tensor[tcl.u8, [PS, HP]],
    wv: tcl.Tensor[tcl.u8, [PS, HP]],
    sq: tcl.Tensor[tcl.u8, [QS, HB]],
    sk: tcl.Tensor[tcl.u8, [PS, HB]],
    sv: tcl.Tensor[tcl.u8, [PS, HB]],
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
    Sixteen = tcl.Axis(16)
    Block = tcl.Axis(32)
    f4: tcl.Tensor[tcl.bf16, [Sixteen]] = tcl.vector(
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    )
    size = one_over_rms(x, [H], 1 / 3840, 1e-6)
    xn = prenorm(x, size, w_rms)
    cos_row = tcl.gather(cos, rope_row, E)
    sin_row = tcl.gather(sin, rope_row, E)
    cosine = tcl.reshape(cos_row, to=[DS])
    sine = tcl.reshape(sin_row, to=[DS])
    blocks_of_x = tcl.reshape(xn, to=[HB, Block])

    q_exponents: tcl.Tensor[tcl.i8, [QS, HB]] = tcl.transmute(sq)
    q_scales = e8m0(q_exponents)
    q_codes: tcl.Tensor[tcl.f4_e2, [QS, H]] = tcl.transmute(wq)
    q_blocks = tcl.reshape(q_codes, to=[QS, HB, Block])
    q = dots(q_blocks, f4, q_scales, blocks_of_x, [HB, Block])
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

    k_exponents: tcl.Tensor[tcl.i8, [PS, HB]] = tcl.transmute(sk)
    k_scales = e8m0(k_exponents)
    k_codes: tcl.Tensor[tcl.f4_e2, [PS, H]] = tcl.transmute(wk)
    k_blocks = tcl.reshape(k_codes, to=[PS, HB, Block])
    k = dots(k_blocks, f4, k_scales, blocks_of_x, [HB, Block])
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

    v_exponents: tcl.Tensor[tcl.i8, [PS, HB]] = tcl.transmute(sv)
    v_scales = e8m0(v_exponents)
    v_codes: tcl.Tensor[tcl.f4_e2, [PS, H]] = tcl.transmute(wv)
    v_blocks = tcl.reshape(v_codes, to=[PS, HB, Block])
    v = dots(v_blocks, f4, v_scales, blocks_of_x, [HB, Block])
    v_heads = tcl.reshape(v, to=[Heads, DS])
    v_inverse = one_over_rms(v_heads, [DS], 1 / 256, 1e-6)
    v_normed = narrowed(v_heads, v_inverse)

    k_new = tcl.reshape(k_turned, to=[N, PS])
    v_new = tcl.reshape(v_normed, to=[N, PS])
    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)
    v_updated = tcl.scatter(v_new, cache_row, TS, init=v_cache)
    k_cache.copy_(k_updated)
    v_cache.copy_(v_updated)
    return tcl.reshape(q_turned, to=[QS])
