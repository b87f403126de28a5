from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def add(left, right, dtype):
    total = operation.addf(fetch.typecast(left, tcl.f32), right)
    return commit.typecast(total, dtype)


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

    wk_loaded = tcl.load(wk)
    wk_column: tcl.Tensor[tcl.f8_e4, [PS]] = tcl.slice(wk_loaded, H, 0)
    k_scaled = add(sk, small, tcl.bf16)
    k = add(wk_column, k_scaled, tcl.bf16)
    k_new = tcl.reshape(k, to=[N, PS])
    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)
    k_cache.copy_(k_updated)

    wv_loaded = tcl.load(wv)
    wv_column: tcl.Tensor[tcl.f8_e4, [PS]] = tcl.slice(wv_loaded, H, 0)
    v_scaled = add(sv, small, tcl.bf16)
    v = add(wv_column, v_scaled, tcl.bf16)
    v_new = tcl.reshape(v, to=[N, PS])
    v_updated = tcl.scatter(v_new, cache_row, TS, init=v_cache)
    v_cache.copy_(v_updated)

    wq_loaded = tcl.load(wq)
    wq_column: tcl.Tensor[tcl.f8_e4, [QS]] = tcl.slice(wq_loaded, H, 0)
    q_scaled = add(sq, small, tcl.bf16)
    return add(wq_column, q_scaled, tcl.bf16)
