from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def look_up(codes, table):
    return commit(fetch.table_lookup(codes, table))


@tcl.tensor_operation
def power_of_two(code):
    biased = operation.bit_andi(fetch.typecast(code, tcl.i32), 255)
    value = operation.reinterpret_as_float(operation.shl(biased, 23))
    return commit.typecast(value, tcl.bf16)


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


@tcl.kernel(bindings={"H": 3840, "QS": 4096, "QP": 2048, "QB": 128}, strict=True)
def sliding_attention_output_mxfp4(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.u8, [H, QP]],
    so: tcl.Tensor[tcl.u8, [H, QB]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    Codes = tcl.Axis(16)
    Block = tcl.Axis(32)
    values: tcl.Tensor[tcl.bf16, [Codes]] = tcl.vector(
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    )

    Tiles = tcl.Axis(15)
    Rows = tcl.Axis(256)
    tiles = tcl.reshape(wo, to=[Tiles, Rows, QP])
    scale_tiles = tcl.reshape(so, to=[Tiles, Rows, QB])
    rows: tcl.MutTensor[tcl.f32, [Tiles, Rows]] = tcl.scratchpad()
    for i in tcl.range(0, 15):
        packed = tcl.index_read(tiles, i, axis=Tiles)
        scale_codes = tcl.index_read(scale_tiles, i, axis=Tiles)
        codes: tcl.Tensor[tcl.f4_e2, [Rows, QS]] = tcl.transmute(packed)
        decoded = look_up(codes, values)
        blocks = tcl.reshape(decoded, to=[Rows, QB, Block])
        exponents: tcl.Tensor[tcl.i8, [Rows, QB]] = tcl.transmute(scale_codes)
        scale = power_of_two(exponents)
        scaled = multiply(blocks, scale, tcl.bf16)
        weights = tcl.reshape(scaled, to=[Rows, QS])
        part = project(weights, x, [Rows])
        tcl.index_write(rows, i, part, axis=Tiles)
    y = tcl.reshape(rows, to=[H])

    size = root_mean_square(y, [H], 3840)
    normed = divide(y, size)
    weighted = multiply(normed, w_post, tcl.f32)
    return add(weighted, residual, tcl.bf16)
