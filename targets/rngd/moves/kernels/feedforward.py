"""The feed-forward network: gate and up, gelu, down, the norms around them."""

from typing import Final

from targets.rngd.moves.chain import GELU, Chain, Step
from targets.rngd.moves.kernels.norms import final_norm, input_norm
from targets.rngd.moves.matrix import Matrix, declare_table, product
from targets.rngd.moves.recipe import Recipe
from targets.rngd.moves.writer import Writer

_UP: Final = Matrix("up", "w_up", "s_up", "L", "H", "HP", "HB", "nvfp4")
_GATE: Final = Matrix("gate", "w_gate", "s_gate", "L", "H", "HP", "HB", "nvfp4")
_DOWN: Final = Matrix("down", "w_down", "s_down", "H", "L", "LP", "LB", "nvfp4")


def feedforward(writer: Writer, recipe: Recipe) -> str:
    """Write the body of decoder_feedforward; return the result's name."""
    declare_table(writer)
    scales = writer.shared("globals")
    for at, name in enumerate(("global_up", "global_gate", "global_down")):
        writer.element(name, scales, "G", at)
    writer.element("scalar", "layer_scalar", "N", 0)
    residual = writer.shared("residual")
    xn = input_norm(writer, residual, "w_pre", "H")

    gate_scale, up_scale = (Step("mulf", "global_gate"),), (Step("mulf", "global_up"),)
    gate = product(writer, recipe, _GATE, xn, (*gate_scale, *GELU))
    linear = () if recipe.scales == "norm" else up_scale
    hidden = product(writer, recipe, _UP, xn, (*linear, Step("mulf", gate)))
    inside = (Step("mulf", "global_down"),) if recipe.scales == "inside" else ()
    down = product(writer, recipe, _DOWN, hidden, inside, last=True)

    epsilon = ""
    if recipe.scales == "after":
        down = writer.chain(
            "down_scaled", "multiply", Chain("fetch", (down,), (Step("mulf", "global_down"),))
        )
    elif recipe.scales == "norm":
        epsilon = _epsilon(writer)
    ending = (Step("addf", residual), Step("mulf", "scalar"))
    return final_norm(writer, down, "w_post", "H", ending, epsilon=epsilon)


def _epsilon(writer: Writer) -> str:
    """Add the norm's epsilon for a product that the linear scales were left out of."""
    steps = (Step("mulf", "global_down"), Step("mulf", "value"))
    both = writer.chain("both_scales", "squared_product", Chain("fetch", ("global_up",), steps))
    over = (Step("reciprocal"), Step("mulf", 1e-6))
    return writer.chain("epsilon", "epsilon_over", Chain("fetch", (both,), over))
