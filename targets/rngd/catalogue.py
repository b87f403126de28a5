"""The target's own moves, for searches without a model: designs, and steps on the best version."""

from collections.abc import Mapping
from typing import Final

from targets.protocol import REVIEW, Ask, TargetError
from targets.rngd.kernels import TASKS
from targets.rngd.moves.designs import DESIGNS, Design, design_source, designs
from targets.rngd.moves.recipe import recipe_in
from targets.rngd.moves.steps import Limit, Step, steps
from targets.rngd.task import Task

_TASKS: Final = "design, implement, analyse, step, review, summarize"
_BOTTLENECKS: Final[Mapping[Limit, str]] = {
    "loops": "latency-bound: every turn of a loop waits for its own loads",
    "decoding": "compute-bound: decoded weights are written and read again",
    "tail": "latency-bound: work is left when the last weights have arrived",
    "loads": "memory-bound: weights arrive all the time",
}
_ADVICE: Final[Mapping[Limit, str]] = {
    "loops": "multiply whole matrices: the compiler tiles and prefetches them by itself",
    "decoding": "multiply the stored weights where they are decoded, in one operation",
    "tail": "let less work depend on the last weights to arrive: split the last matrix, and move "
    "small loads behind it",
    "loads": "every load costs its start, however small: load a vector once, and only when needed",
}


class RngdCatalogue:
    """Answers as a model would, in the same format; knows nothing but what it is asked."""

    def reply(self, ask: Ask) -> str:
        """Return the reply text for ``ask``; deterministic given ``ask``.

        Raises:
            TargetError: no such kernel, or no such task.
        """
        if ask.kernel not in TASKS:
            known = ", ".join(TASKS)
            raise TargetError(f"unknown kernel {ask.kernel!r}; use one of {known}")
        task = TASKS[ask.kernel]
        match ask.task:
            case "design":
                return _design(task, ask)
            case "implement":
                return _implement(task, ask)
            case "analyse":
                return _analyse(ask)
            case "step":
                return _step(ask)
            case "summarize":
                return "<nothing>the catalogue reads nothing</nothing>"
            case "review":
                return REVIEW
            case other:
                raise TargetError(f"the catalogue has no task {other!r}; use one of {_TASKS}")


def _design(task: Task, ask: Ask) -> str:
    for design in designs(task, ask.seed):
        if _move(design) not in ask.tried:
            return f"<design>{_claims(design)}<plan>{_plan(design)}</plan></design>"
    return "<nothing>every design has been tried</nothing>"


def _implement(task: Task, ask: Ask) -> str:
    name = ask.plan.strip().partition("\n")[0]
    design = next((d for d in DESIGNS if d.name == name), None)
    if design is None:
        return "<nothing>the plan names no design of the catalogue</nothing>"
    return f"{_claims(design)}<source>\n{design_source(task, design)}</source>"


def _move(design: Design) -> str:
    return f"design:{design.name}"


def _claims(design: Design) -> str:
    return (
        f"<hypothesis>{design.idea}</hypothesis><speedup>{design.speedup:g}</speedup>"
        f"<move>{_move(design)}</move>"
    )


def _plan(design: Design) -> str:
    return f"{design.name}\n{design.idea}\nChoices: {design.recipe.words}."


def _analyse(ask: Ask) -> str:
    limit = _limit(ask.incumbent_source)
    return f"<bottleneck>{_BOTTLENECKS[limit]}</bottleneck><advice>{_ADVICE[limit]}</advice>"


def _limit(source: str) -> Limit:
    """Return what a version waits for, by the choices that it says it was made of."""
    recipe = recipe_in(source)
    if recipe is None or recipe.tile:
        return "loops"
    if recipe.multiply != "pass":
        return "decoding"
    return "loads" if recipe.last else "tail"


def _step(ask: Ask) -> str:
    limit = _read_limit(ask.bottleneck)
    found = steps(ask.kernel, ask.incumbent_source, limit, ask.seed, ask.tried)
    step = next(found, None)
    if step is None:
        return "<nothing>no choice of this source has a value that was not tried</nothing>"
    return _changed(step)


def _read_limit(bottleneck: str) -> Limit | None:
    """Read what the best version waits for from an analyst's words, whoever wrote them."""
    words: tuple[tuple[str, Limit], ...] = (
        ("loop", "loops"),
        ("decod", "decoding"),
        ("compute", "decoding"),
        ("left", "tail"),
        ("tail", "tail"),
        ("memory", "loads"),
        ("load", "loads"),
    )
    text = bottleneck.lower()
    return next((limit for word, limit in words if word in text), None)


def _changed(step: Step) -> str:
    edits = "".join(
        f'<edit sites="{step.sites}"><search>\n{edit.search}\n</search>'
        f"<replace>\n{edit.replace}\n</replace></edit>"
        for edit in step.edits
    )
    return (
        f"<hypothesis>{step.why}: a few per cent, if it is what limits.</hypothesis>"
        f"<speedup>1.02</speedup><move>{step.move}</move>{edits}"
    )
