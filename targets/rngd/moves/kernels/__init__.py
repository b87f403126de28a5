"""The kernels' mathematics, put together as a recipe says."""

from collections.abc import Callable, Mapping
from typing import Final

from targets.rngd.moves.kernels.attention_output import attention_output
from targets.rngd.moves.kernels.feedforward import feedforward
from targets.rngd.moves.kernels.project_qkv import project_qkv
from targets.rngd.moves.recipe import Recipe
from targets.rngd.moves.writer import Writer
from targets.rngd.task import Task

_BODIES: Final[Mapping[str, Callable[[Writer, Recipe], str]]] = {
    "decoder_feedforward": feedforward,
    "sliding_attention_output": attention_output,
    "sliding_attention_output_mxfp4": attention_output,
    "sliding_project_qkv": project_qkv,
    "sliding_project_qkv_mxfp4": project_qkv,
}


def possible(task: Task, recipe: Recipe) -> bool:
    """Whether a recipe's tiles fill every matrix of a kernel, and its unrolling their loops."""
    weights = [p for p in task.parameters if p.name.startswith("w") and len(p.axes) > 1]
    rows = [task.bindings[p.axes[0]] for p in weights]
    turn = recipe.tile * recipe.unroll
    return not turn or all(n % turn == 0 and n > recipe.tile for n in rows)


def source(task: Task, recipe: Recipe, about: str = "") -> str:
    """Return a kernel's source, put together as a recipe says.

    Args:
        task: one of the target's.
        recipe: the choices.
        about: comment lines to put at the top.
    """
    explicit = recipe.loads == "explicit"
    writer = Writer(task, recipe.chains == "fused", recipe.vectors, explicit)
    returned = _BODIES[task.name](writer, recipe)
    return writer.source(about + recipe.header, returned)
