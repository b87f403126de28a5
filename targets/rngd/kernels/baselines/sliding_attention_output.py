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


@tcl.kernel(bindings={"H": 3840, "QS": 4096}, strict=True)
def sliding_attention_output(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.f8_e4, [H, QS]],
    so: tcl.Tensor[tcl.bf16, [H]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    Tiles = tcl.Axis(15)
    Rows = tcl.Axis(256)
    tiles = tcl.reshape(wo, to=[Tiles, Rows, QS])
    rows: tcl.MutTensor[tcl.f32, [Tiles, Rows]] = tcl.scratchpad()
    for i in tcl.range(0, 15):
        tile = tcl.index_read(tiles, i, axis=Tiles)
        wide = widen(tile)
        part = project(wide, x, [Rows])
        tcl.index_write(rows, i, part, axis=Tiles)
    raw = tcl.reshape(rows, to=[H])
    y = multiply(raw, so, tcl.f32)

    size = root_mean_square(y, [H], 3840)
    normed = divide(y, size)
    weighted = multiply(normed, w_post, tcl.f32)
    return add(weighted, residual, tcl.bf16)
