from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def one_over_rms(x, axes, share, epsilon):
    wide = fetch.typecast(x, tcl.f32)
    mean = operation.mulf(operation.reduce(operation.mulf(wide, wide), axes=axes), share)
    return commit(operation.divf(1.0, operation.sqrt(operation.addf(mean, epsilon))))


@tcl.tensor_operation
def e8m0(code):
    exponent = operation.shl(operation.bit_andi(fetch.typecast(code, tcl.i32), 255), 23)
    return commit.typecast(operation.reinterpret_as_float(exponent), tcl.bf16)


@tcl.tensor_operation
def dots(codes, f4, scales, x, axes):
    dot = operation.mulf(fetch.typecast(fetch.table_lookup(codes, f4), tcl.f32), scales)
    return commit(operation.reduce(operation.mulf(dot, x), axes=axes))


@tcl.tensor_operation
def finish(y, inverse, weight, residual):
    scaled = operation.mulf(operation.mulf(y, inverse), weight)
    return commit.typecast(operation.addf(scaled, residual), tcl.bf16)


@tcl.kernel(bindings={"H": 3840, "QS": 4096, "QP": 2048, "QB": 128}, strict=True)
def sliding_attention_output_mxfp4(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.u8, [H, QP]],
    so: tcl.Tensor[tcl.u8, [H, QB]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    Sixteen = tcl.Axis(16)
    Block = tcl.Axis(32)
    f4: tcl.Tensor[tcl.bf16, [Sixteen]] = tcl.vector(
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    )
    blocks_of_x = tcl.reshape(x, to=[QB, Block])
    exponents: tcl.Tensor[tcl.i8, [H, QB]] = tcl.transmute(so)
    scales = e8m0(exponents)
    codes: tcl.Tensor[tcl.f4_e2, [H, QS]] = tcl.transmute(wo)
    blocks = tcl.reshape(codes, to=[H, QB, Block])
    y = dots(blocks, f4, scales, blocks_of_x, [QB, Block])
    inverse = one_over_rms(y, [H], 1 / 3840, 1e-6)
    return finish(y, inverse, w_post, residual)
