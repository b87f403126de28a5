from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def one_over_rms(x, axes, share, epsilon):
    wide = fetch.typecast(x, tcl.f32)
    mean = operation.mulf(operation.reduce(operation.mulf(wide, wide), axes=axes), share)
    return commit(operation.divf(1.0, operation.sqrt(operation.addf(mean, epsilon))))


@tcl.tensor_operation
def dots(weights, x, axes):
    wide = fetch.typecast(weights, tcl.f32)
    return commit(operation.reduce(operation.mulf(wide, x), axes=axes))


@tcl.tensor_operation
def more_dots(weights, x, before, rows, axes):
    wide = fetch.typecast(weights, tcl.f32)
    dot = operation.addf(operation.reduce(operation.mulf(wide, x), axes=axes), before)
    return commit(operation.mulf(dot, rows))


@tcl.tensor_operation
def finish(y, inverse, weight, residual):
    scaled = operation.mulf(operation.mulf(y, inverse), weight)
    return commit.typecast(operation.addf(scaled, residual), tcl.bf16)


@tcl.kernel(bindings={"H": 3840, "QS": 4096}, strict=True)
def sliding_attention_output(
    x: tcl.Tensor[tcl.bf16, [QS]],
    wo: tcl.Tensor[tcl.f8_e4, [H, QS]],
    so: tcl.Tensor[tcl.bf16, [H]],
    w_post: tcl.Tensor[tcl.bf16, [H]],
    residual: tcl.Tensor[tcl.bf16, [H]],
) -> tcl.Tensor[tcl.bf16, [H]]:
    Early = tcl.Axis(3584)
    Late = tcl.Axis(512)
    vector = tcl.load(x)
    early_weights = tcl.slice(wo, QS, 0, output_axis=Early)
    early_x = tcl.slice(vector, QS, 0, output_axis=Early)
    most = dots(early_weights, early_x, [Early])
    late_weights = tcl.slice(wo, QS, 3584, output_axis=Late)
    late_x = tcl.slice(vector, QS, 3584, output_axis=Late)
    y = more_dots(late_weights, late_x, most, so, [Late])
    inverse = one_over_rms(y, [H], 1 / 3840, 1e-6)
    return finish(y, inverse, w_post, residual)
