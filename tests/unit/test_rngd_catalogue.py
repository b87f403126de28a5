import ast
from dataclasses import replace

import pytest

from decisions.replies import AnalysisText, PlanTexts, SourceText, parse
from events.vocabulary import Nothing, Review, Task
from targets.protocol import Ask, TargetError
from targets.rngd.catalogue import RngdCatalogue
from targets.rngd.kernels import TASKS
from targets.rngd.moves.designs import DESIGNS, design_source, designs
from targets.rngd.moves.kernels import possible, source
from targets.rngd.moves.recipe import CHOICES, MEANINGS, Recipe, recipe_in
from targets.rngd.normal import normalize
from targets.rngd.sources import sources

CATALOGUE = RngdCatalogue()
EVERY = pytest.mark.parametrize("kernel", TASKS)
FEEDFORWARD = "decoder_feedforward"
OUTPUT = "sliding_attention_output"
ONE_PASS = next(design for design in DESIGNS if design.name == "one-pass")


def _ask(kernel: str, task: Task, **changes: object) -> Ask:
    ask = Ask(kernel, task, "", "", frozenset(), "", 1)
    return replace(ask, **changes)  # type: ignore[arg-type]


def _all_steps(kernel: str, incumbent: str, **changes: object) -> list[SourceText]:
    """Ask for steps on one version until there is none."""
    found: list[SourceText] = []
    while True:
        tried = frozenset(step.move for step in found)
        ask = _ask(kernel, "step", incumbent_source=incumbent, tried=tried, **changes)
        step = parse("step", CATALOGUE.reply(ask), incumbent)
        if isinstance(step, Nothing):
            return found
        assert isinstance(step, SourceText), step
        found.append(step)


@EVERY
def test_every_design_is_proposed_once_and_can_be_implemented(kernel: str) -> None:
    """A plan is all that passes from architect to implementer; then there is nothing left."""
    made: dict[str, str] = {}
    for _ in designs(TASKS[kernel], 1):
        reply = CATALOGUE.reply(_ask(kernel, "design", tried=frozenset(made)))
        told = parse("design", reply, "")
        assert isinstance(told, PlanTexts), told
        (plan,) = told.plans
        reply = CATALOGUE.reply(_ask(kernel, "implement", plan=plan.plan))
        built = parse("implement", reply, "")
        assert isinstance(built, SourceText), built
        assert built.move == plan.move
        made[plan.move] = normalize(built.source)

    assert len(made) == len(set(made.values())) >= 7
    last = parse("design", CATALOGUE.reply(_ask(kernel, "design", tried=frozenset(made))), "")
    assert isinstance(last, Nothing)


@EVERY
def test_every_step_applies_and_gives_another_source(kernel: str) -> None:
    """The parser counts the sites of every edit; a source that was seen would waste a build."""
    incumbent = design_source(TASKS[kernel], ONE_PASS)
    steps = _all_steps(kernel, incumbent)

    found = [normalize(step.source) for step in steps]
    assert len(set(found)) == len(steps) >= 8
    assert normalize(incumbent) not in found


@EVERY
def test_a_step_leaves_the_source_that_its_choices_say(kernel: str) -> None:
    """Or the next step would start from choices that the source was not made of."""
    for step in _all_steps(kernel, design_source(TASKS[kernel], ONE_PASS)):
        recipe = recipe_in(step.source)
        assert recipe is not None
        assert step.source == source(TASKS[kernel], recipe, "# Design one-pass.\n")


def test_steps_on_a_source_that_a_model_changed_keep_the_change() -> None:
    """Edits reach no further than the choice that they are for."""
    task = TASKS[OUTPUT]
    changed = design_source(task, ONE_PASS).replace("1e-06", "1.0e-6")
    steps = _all_steps(OUTPUT, changed)

    assert len(steps) > 0
    kept = [step for step in steps if "1.0e-6" in step.source]
    assert {"step:last=8", "step:scales=norm"} & {step.move for step in kept}


@EVERY
def test_loops_of_any_source_can_be_unrolled(kernel: str) -> None:
    """The baseline says no choices; all its loops of one length change at once."""
    baseline = sources(TASKS[kernel]).baseline
    steps = _all_steps(kernel, baseline)

    assert steps
    assert all("unroll=" in step.source for step in steps)
    assert len({step.source for step in steps}) == len(steps)


def test_a_source_without_loops_and_choices_has_no_steps() -> None:
    """Nothing is known of it."""
    assert _all_steps(OUTPUT, "def kernel(): pass\n") == []


def test_steps_that_bear_on_the_bottleneck_come_first() -> None:
    """An analyst's words order the choices; without any the seed does."""
    incumbent = design_source(TASKS[OUTPUT], ONE_PASS)
    tail = _all_steps(OUTPUT, incumbent, bottleneck="work is left when the weights are there")
    first, second = (_all_steps(OUTPUT, incumbent, seed=seed) for seed in (1, 2))

    assert tail[0].move.startswith("step:last=")
    assert [step.move for step in first] != [step.move for step in second]
    assert {step.move for step in first} == {step.move for step in second}


@EVERY
def test_every_source_has_the_outside_that_its_task_says(kernel: str) -> None:
    """A source that parses and keeps the signature; whether it is right, the checks say."""
    task = TASKS[kernel]
    for design in designs(task, 0):
        tree = ast.parse(design_source(task, design))
        (function,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel]
        assert [a.arg for a in function.args.args] == [p.name for p in task.parameters]


@pytest.mark.parametrize("asked", ["design", "analyse", "step", "review", "summarize"])
def test_a_reply_depends_on_what_is_asked_alone(asked: Task) -> None:
    """Two catalogues agree; a resumed run asks again."""
    incumbent = design_source(TASKS[FEEDFORWARD], ONE_PASS)
    ask = _ask(FEEDFORWARD, asked, incumbent_source=incumbent)

    assert CATALOGUE.reply(ask) == RngdCatalogue().reply(ask)
    expected = {
        "design": PlanTexts,
        "analyse": AnalysisText,
        "step": SourceText,
        "review": Review,
        "summarize": Nothing,
    }
    assert isinstance(parse(asked, CATALOGUE.reply(ask), incumbent), expected[asked])


def test_every_choice_has_a_meaning_and_its_default_among_its_values() -> None:
    """What a header says is read again."""
    assert CHOICES.keys() == MEANINGS.keys()
    for design in DESIGNS:
        assert recipe_in(design.recipe.header) == design.recipe
    assert recipe_in("# Choices: multiply=engine tile=7\n") is None
    assert recipe_in("no header") is None


def test_tiles_fill_every_matrix_and_loops_are_unrolled_evenly() -> None:
    """What would be left over belongs to no turn; the compiler refuses it."""
    task = TASKS[OUTPUT]

    assert possible(task, Recipe(tile=256, unroll=5))
    assert not possible(task, Recipe(tile=256, unroll=4))
    assert not possible(task, Recipe(tile=512))


def test_what_the_catalogue_does_not_know_is_an_error() -> None:
    """A mistake in a configuration, not a source."""
    with pytest.raises(TargetError, match="unknown kernel"):
        CATALOGUE.reply(_ask("softmax", "design"))
    with pytest.raises(TargetError, match="no task"):
        CATALOGUE.reply(replace(_ask(OUTPUT, "design"), task="guess"))
    unplanned = parse("implement", CATALOGUE.reply(_ask(OUTPUT, "implement", plan="x")), "")
    assert isinstance(unplanned, Nothing)
