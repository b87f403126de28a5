"""The kernels of RNGD: the target's sources keep to what it says of them; nothing is run here."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from targets.gemma4.fixtures import RECIPES, fixture
from targets.gemma4.kernels import kernel
from targets.gemma4.launches import Drawn
from targets.protocol import FixtureResult
from targets.rngd.card import card, signature
from targets.rngd.check import arguments, check
from targets.rngd.dtypes import n_bytes
from targets.rngd.environment import Environment
from targets.rngd.kernels import TASKS, text
from targets.rngd.launching import STORAGE, Launcher
from targets.rngd.sources import sources

EVERY = pytest.mark.parametrize("name", TASKS)
NOWHERE = Environment(Path("/nonexistent"), Path("/nonexistent"), {}, Path("/nonexistent"), ())
WITH_RUNTIME = dataclasses.replace(NOWHERE, versions={"furiosa-torch": "2026.4.0"})
OUTPUT = "sliding_attention_output"
"""A kernel in the compiler's text, with the outside of its task."""
TEXT = """\
def sliding_attention_output<H=3840, QS=4096>(
    x: [QS]/bf16,
    wo: [H, QS]/f8_e4,
    so: [H]/bf16,
    w_post: [H]/bf16,
    residual: [H]/bf16
) -> [H]/bf16:
    assert H == 3840
    assert QS == 4096
    return residual
"""


def definition(source: str) -> tuple[str, str, dict[str, int]]:
    """Return arguments, result and bindings of the kernel that a source defines."""
    tree = ast.parse(source)
    last = [node for node in tree.body if isinstance(node, ast.FunctionDef)][-1]
    (decorator,) = last.decorator_list
    assert isinstance(decorator, ast.Call)
    bindings, strict = (keyword.value for keyword in decorator.keywords)
    assert ast.literal_eval(strict) is True
    assert last.returns is not None
    return ast.unparse(last.args), ast.unparse(last.returns), ast.literal_eval(bindings)


@EVERY
@pytest.mark.parametrize("folder", ["baselines", "loads"])
def test_a_source_has_the_outside_of_its_task(name: str, folder: str) -> None:
    """What the card tells an author, and the rules hold everybody to."""
    source = text("baselines" if folder == "baselines" else "loads", name)

    assert definition(source) == definition(f"{signature(TASKS[name])}\n    pass")
    assert definition(source)[2] == dict(TASKS[name].bindings)


@EVERY
def test_the_weight_bytes_are_those_of_the_matrices(name: str) -> None:
    """They are the bound; vectors and tables are no weights."""
    task = TASKS[name]
    tables = ("cos", "sin", "k_cache", "v_cache")
    matrices = [p for p in task.parameters if len(p.axes) == 2 and p.name not in tables]

    sizes = [n_bytes(p.dtype, (task.bindings[axis] for axis in p.axes)) for p in matrices]
    assert sum(sizes) == task.weight_bytes


@EVERY
def test_the_card_tells_all_that_an_author_needs(name: str) -> None:
    """An author sees nothing else."""
    task, facts = TASKS[name], kernel(name, "full")
    told = card(task)

    assert told.weight_bytes == task.weight_bytes
    assert signature(task) in told.task
    assert f"{facts.atol} + {facts.rtol} * |exact|" in told.task
    for parameter in task.parameters:
        assert parameter.name in told.task.split("Sizes:")[0].replace("cos_row", "cos")
    assert all(f"{axis} = {size}" in told.task for axis, size in task.bindings.items())
    assert ("1 to 254" in told.task) == name.endswith("_mxfp4")


@EVERY
def test_the_controls_are_the_baseline_but_for_one_thing(name: str) -> None:
    """One computes another mean; the other has smaller tiles of the same matrices."""
    own = sources(TASKS[name])

    changed = [
        (old, new)
        for old, new in zip(own.baseline.split("\n"), own.canary_wrong.split("\n"), strict=True)
        if old != new
    ]
    assert changed == [
        ("    mean = operation.mulf(total, 1.0 / n)", "    mean = operation.mulf(total, 2.0 / n)")
    ]
    assert tiled(own.baseline) == tiled(own.canary_slow)
    assert own.baseline != own.canary_slow


def tiled(source: str) -> list[int]:
    """Return the rows that each loop covers."""
    tree = ast.parse(source)
    sizes = {
        node.targets[0].id: ast.literal_eval(node.value.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "tcl.Axis"
    }
    rows = [size for axis, size in sizes.items() if axis.endswith("Rows")]
    tiles = [size for axis, size in sizes.items() if axis.endswith("Tiles")]
    loops = [
        ast.literal_eval(node.iter.args[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)
    ]
    assert tiles == loops
    return [n * each for n, each in zip(tiles, rows, strict=True)]


@EVERY
def test_a_launch_gets_what_the_task_says(name: str) -> None:
    """The runtime would take the bytes of any format and say nothing."""
    task, facts = TASKS[name], kernel(name, "full")
    drawn = Drawn(facts, 1, fixture(facts, 1, 0).inputs, {})
    passed = arguments(drawn)

    assert set(passed) >= {parameter.name for parameter in task.parameters}
    for parameter in task.parameters:
        array = passed[parameter.name]
        assert array.dtype == STORAGE[parameter.dtype]
        assert array.shape == tuple(task.bindings[axis] for axis in parameter.axes)


def test_offsets_become_rows() -> None:
    """The ring has wrapped around, so the two rows differ."""
    facts = kernel("sliding_project_qkv", "small")
    drawn = Drawn(facts, 1, fixture(facts, 1, 0).inputs, {})
    rope, cache = (int(arguments(drawn)[name][0]) for name in ("rope_row", "cache_row"))

    assert drawn.arrays["offsets"].tolist() == [
        rope * 2 * facts.dims["DS"],
        cache * 2 * facts.dims["PS"],
    ]
    assert rope % facts.dims["TS"] == cache != rope


def test_an_array_of_another_format_is_refused_before_a_launch() -> None:
    """Int16 for bf16 has the same bytes, and the runtime does not ask."""
    task = TASKS[OUTPUT]
    shapes = {p.name: tuple(task.bindings[a] for a in p.axes) for p in task.parameters}
    arrays = {p.name: np.zeros(shapes[p.name], STORAGE[p.dtype]) for p in task.parameters}
    launcher = Launcher(NOWHERE)

    for wrong in (arrays["so"].astype(np.int16), arrays["so"][:-1]):
        with pytest.raises(ValueError, match="so is"):
            launcher.launch(task, TEXT, {**arrays, "so": wrong})


def test_nothing_passes_without_the_functional_runtime() -> None:
    """The one result says what is missing and how to get it."""
    (result,) = check(NOWHERE, TASKS[OUTPUT], TEXT, range(len(RECIPES)))

    assert not result.passed
    assert result.margin is None
    assert "furiosa-torch is not installed" in result.detail
    assert "pip install" in result.detail


@pytest.mark.parametrize(
    ("said", "lie"),
    [
        ("wo: [H, QS]/f8_e4", "wo: [H, QS]/i8"),
        ("x: [QS]/bf16", "x: [QS]/f16"),
        ("H=3840", "H=3841"),
        ("-> [H]/bf16", "-> [H]/f32"),
    ],
)
def test_a_text_with_another_outside_is_never_launched(said: str, lie: str) -> None:
    """An artifact may come from anywhere; there is no process that could be started here."""
    results = check(WITH_RUNTIME, TASKS[OUTPUT], TEXT.replace(said, lie), [1, 2])

    assert [(r.fixture, r.margin) for r in results] == [("rules", None)]
    assert isinstance(results[0], FixtureResult)
    assert "are not the task's" in results[0].detail
