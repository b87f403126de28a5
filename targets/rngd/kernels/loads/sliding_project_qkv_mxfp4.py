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
    hidden = add(x, w_rms, tcl.bf16)
    hidden_first: tcl.Tensor[tcl.bf16, []] = tcl.slice(hidden, H, 0)
    cos_row = tcl.gather(cos, rope_row, E)
    sin_row = tcl.gather(sin, rope_row, E)
    tables = add(cos_row, sin_row, tcl.bf16)
    norms = add(q_rms, k_rms, tcl.bf16)
    angles = add(tables, norms, tcl.bf16)
    angle_row: tcl.Tensor[tcl.bf16, [DS]] = tcl.slice(angles, N, 0)
    angle: tcl.Tensor[tcl.bf16, []] = tcl.slice(angle_row, DS, 0)
    small = add(hidden_first, angle, tcl.bf16)

    sk_loaded = tcl.load(sk)
    wk_loaded = tcl.load(wk)
    sk_codes: tcl.Tensor[tcl.u8, [PS]] = tcl.slice(sk_loaded, HB, 0)
    sk_bytes: tcl.Tensor[tcl.i8, [PS]] = tcl.transmute(sk_codes)
    sk_column = number(sk_bytes)
    wk_codes: tcl.Tensor[tcl.u8, [PS]] = tcl.slice(wk_loaded, HP, 0)
    wk_bytes: tcl.Tensor[tcl.i8, [PS]] = tcl.transmute(wk_codes)
    wk_column = number(wk_bytes)
    k_scaled = add(sk_column, small, tcl.bf16)
    k = add(wk_column, k_scaled, tcl.bf16)
    k_new = tcl.reshape(k, to=[N, PS])
    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)
    k_cache.copy_(k_updated)

    sv_loaded = tcl.load(sv)
    wv_loaded = tcl.load(wv)
    sv_codes: tcl.Tensor[tcl.u8, [PS]] = tcl.slice(sv_loaded, HB, 0)
    sv_bytes: tcl.Tensor[tcl.i8, [PS]] = tcl.transmute(sv_codes)
    sv_column = number(sv_bytes)
    wv_codes: tcl.Tensor[tcl.u8, [PS]] = tcl.slice(wv_loaded, HP, 0)
    wv_bytes: tcl.Tensor[tcl.i8, [PS]] = tcl.transmute(wv_codes)
    wv_column = number(wv_bytes)
    v_scaled = add(sv_column, small, tcl.bf16)
    v = add(wv_column, v_scaled, tcl.bf16)
    v_new = tcl.reshape(v, to=[N, PS])
    v_updated = tcl.scatter(v_new, cache_row, TS, init=v_cache)
    v_cache.copy_(v_updated)

    sq_loaded = tcl.load(sq)
    wq_loaded = tcl.load(wq)
    sq_codes: tcl.Tensor[tcl.u8, [QS]] = tcl.slice(sq_loaded, HB, 0)
    sq_bytes: tcl.Tensor[tcl.i8, [QS]] = tcl.transmute(sq_codes)
    sq_column = number(sq_bytes)
    wq_codes: tcl.Tensor[tcl.u8, [QS]] = tcl.slice(wq_loaded, HP, 0)
    wq_bytes: tcl.Tensor[tcl.i8, [QS]] = tcl.transmute(wq_codes)
    wq_column = number(wq_bytes)
    q_scaled = add(sq_column, small, tcl.bf16)
    return add(wq_column, q_scaled, tcl.bf16)
