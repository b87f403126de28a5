"""Norms: the root of the mean square, and what is divided by it."""

from targets.rngd.moves.chain import Chain, Step
from targets.rngd.moves.writer import Writer


def inverse_size(
    writer: Writer, name: str, x: str, axis: str, *, scales: str = "", epsilon: str = ""
) -> str:
    """Add 1 over the root of the mean square of ``x`` along an axis.

    Args:
        writer: of the kernel.
        name: of the new tensor.
        x: a tensor with the axis.
        axis: that the mean goes over.
        scales: a tensor to multiply ``x`` by first, if any.
        epsilon: a number of the kernel to use instead of the norm's own.
    """
    steps = (
        *((Step("mulf", scales),) if scales else ()),
        Step("mulf", "value"),
        Step("sum", (axis,)),
        Step("mulf", 1 / writer.sizes[axis]),
        Step("addf", epsilon or 1e-6),
        Step("sqrt"),
        Step("reciprocal"),
    )
    return writer.chain(name, "inverse_size", Chain("fetch", (x,), steps), "f32")


def input_norm(writer: Writer, x: str, weight: str, axis: str) -> str:
    """Add the norm of ``x``, times its weight."""
    inverse = inverse_size(writer, "x_inverse", x, axis)
    steps = (Step("mulf", inverse), Step("mulf", weight))
    return writer.chain("xn", "normalize", Chain("fetch", (x,), steps))


def final_norm(
    writer: Writer,
    y: str,
    weight: str,
    axis: str,
    ending: tuple[Step, ...],
    *,
    scales: str = "",
    epsilon: str = "",
) -> str:
    """Add the result in bf16: the norm of ``y``, times its weight, and what follows."""
    inverse = inverse_size(writer, "y_inverse", y, axis, scales=scales, epsilon=epsilon)
    steps = (
        *((Step("mulf", scales),) if scales else ()),
        Step("mulf", inverse),
        Step("mulf", weight),
        *ending,
    )
    return writer.chain("result", "finish", Chain("fetch", (y,), steps), "bf16")
