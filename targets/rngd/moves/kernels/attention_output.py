"""The attention output: one matrix, a norm, and the residual."""

from typing import Final

from targets.rngd.moves.chain import Chain, Step
from targets.rngd.moves.kernels.norms import final_norm
from targets.rngd.moves.matrix import Matrix, declare_table, product
from targets.rngd.moves.recipe import Recipe
from targets.rngd.moves.writer import Writer

_F8: Final = Matrix("out", "wo", "", "H", "QS", "QS", "QS", "f8")
_MXFP4: Final = Matrix("out", "wo", "so", "H", "QS", "QP", "QB", "mxfp4")


def attention_output(writer: Writer, recipe: Recipe) -> str:
    """Write the body of sliding_attention_output in either format; return the result's name."""
    f8 = writer.tensors["wo"].dtype == "f8_e4"
    if not f8:
        declare_table(writer)
    row_scale = (Step("mulf", "so"),) if f8 else ()
    inside = row_scale if recipe.scales == "inside" else ()
    out = product(writer, recipe, _F8 if f8 else _MXFP4, "x", inside, last=True)
    if row_scale and recipe.scales == "after":
        out = writer.chain("out_scaled", "multiply", Chain("fetch", (out,), row_scale))
    scales = "so" if row_scale and recipe.scales == "norm" else ""
    ending = (Step("addf", "residual"),)
    return final_norm(writer, out, "w_post", "H", ending, scales=scales)
