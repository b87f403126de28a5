from dataclasses import replace
from itertools import islice

import pytest

from decisions.replies import AnalysisText, PlanTexts, SourceText, parse
from events.vocabulary import Nothing, Review, Task
from sim.npu.device import device_time
from sim.npu.faults import faults
from sim.npu.kernels import SIGNATURES
from sim.npu.parse import parse as parse_source
from sim.npu.printing import normalize
from sim.npu.schedule import schedule
from sim.npu.syntax import KernelText
from sim.npu.toolchain import V1_0, V1_2
from targets.protocol import Ask, TargetError
from targets.sim.catalogue import SimCatalogue
from targets.sim.moves.bottleneck import limit_in
from targets.sim.moves.designs import designs
from targets.sim.moves.registry import weights
from targets.sim.moves.search import Proposal, Search
from tests.support.npu_kernels import ROOT, kernel_program, kernel_source, legal

CATALOGUE = SimCatalogue(V1_0)
KERNELS = tuple(SIGNATURES)
ATTENTION = "sliding_attention_output"
SOURCE = kernel_source(ATTENTION, "baseline")


def _ask(kernel: str, task: Task, **changes: object) -> Ask:
    ask = Ask(kernel, task, kernel_source(kernel, "baseline"), "", frozenset(), "", 1)
    return replace(ask, **changes)  # type: ignore[arg-type]


def _steps(kernel: str, n: int, **changes: object) -> list[SourceText]:
    """Ask for steps on one version again and again, as the director does."""
    found: list[SourceText] = []
    while len(found) < n:
        ask = _ask(kernel, "step", tried=frozenset(s.move for s in found), **changes)
        step = parse("step", CATALOGUE.reply(ask), ask.incumbent_source)
        assert isinstance(step, SourceText), step
        found.append(step)
    return found


def _first(search: Search, n: int) -> list[Proposal]:
    found: dict[str, Proposal] = {}
    while len(found) < n:
        proposal = search.first(found)
        assert proposal is not None
        found[proposal.name] = proposal
    return list(found.values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_step_applies_and_compiles_and_none_comes_twice(kernel: str) -> None:
    """The parser counts the sites of every edit; what the compiler refuses is not proposed."""
    steps = _steps(kernel, 12)

    assert len({s.move for s in steps}) == len({normalize(s.source) for s in steps}) == 12
    assert all(legal(kernel, s.source) for s in steps)


def test_the_edits_make_exactly_the_kernel_that_was_tried() -> None:
    """An edit that strayed would be measured under another change's name."""
    tree = parse_source(ATTENTION, SOURCE)
    assert isinstance(tree, KernelText)
    tried = {p.name: p.source for p in _first(Search(tree, V1_0, weights(None), 1), 20)}

    for step in _steps(ATTENTION, 20):
        assert normalize(step.source) == normalize(tried[step.move])


def test_a_version_offers_hundreds_of_steps() -> None:
    """A campaign asks thousands of times; a version that nothing beats is asked on."""
    tree = parse_source(ATTENTION, SOURCE)
    assert isinstance(tree, KernelText)

    assert len(_first(Search(tree, V1_0, weights(None), 1), 300)) == 300


def test_another_seed_tries_in_another_order() -> None:
    """Campaigns with several seeds should not all get stuck at the same place."""
    first, second = ([s.move for s in _steps(ATTENTION, 8, seed=seed)] for seed in (1, 2))

    assert first != second


@pytest.mark.parametrize("task", ["design", "analyse", "step", "review"])
def test_a_reply_depends_on_what_is_asked_alone(task: Task) -> None:
    """A catalogue without memory may be asked in any process, and again after a crash."""
    ask = _ask(ATTENTION, task)
    _steps(ATTENTION, 3)

    assert CATALOGUE.reply(ask) == SimCatalogue(V1_0).reply(ask)


def test_every_design_is_proposed_once() -> None:
    """Then there is nothing left; a campaign begins with 16 for each kernel."""
    moves: list[str] = []
    while True:
        reply = CATALOGUE.reply(_ask(ATTENTION, "design", tried=frozenset(moves)))
        designs = parse("design", reply, "")
        if isinstance(designs, Nothing):
            break
        assert isinstance(designs, PlanTexts), designs
        moves.append(designs.plans[0].move)

    assert len(moves) == len({*moves}) >= 16


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_design_can_be_implemented_and_does_not_hang_the_device(kernel: str) -> None:
    """A plan is all that passes from architect to implementer; a hang costs minutes."""
    for design in designs(1):
        made = _implemented(kernel, design.name, kernel_source(kernel, "baseline"))

        program = legal(kernel, made.source)
        assert program, made.source
        assert "hang" not in {fault.kind for fault in faults(program)}, design.name
        assert made.move == f"design:{design.name}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_design_of_a_design_is_as_good(kernel: str) -> None:
    """A design is asked for on whatever is best at that time, and its name alone tells it apart."""
    first, second, *_ = designs(1)
    other = _implemented(kernel, second.name, kernel_source(kernel, "baseline"))
    fresh, again = (
        legal(kernel, _implemented(kernel, first.name, source).source)
        for source in (kernel_source(kernel, "baseline"), other.source)
    )

    assert fresh
    assert again
    assert schedule(again, V1_0).makespan == pytest.approx(schedule(fresh, V1_0).makespan, rel=0.02)


def _implemented(kernel: str, plan: str, source: str) -> SourceText:
    reply = CATALOGUE.reply(_ask(kernel, "implement", plan=plan, incumbent_source=source))
    made = parse("implement", reply, "")
    assert isinstance(made, SourceText), made
    return made


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_of_the_first_designs_comes_near_the_bound(kernel: str) -> None:
    """Placements, loops and blocks that must change together are out of reach of single steps."""
    bound = device_time(kernel_program(kernel, "bound"), V1_0).cycles
    sources = (
        _implemented(kernel, design.name, kernel_source(kernel, "baseline")).source
        for design in islice(designs(1), 12)
    )

    best = min(device_time(program, V1_0).cycles for s in sources if (program := legal(kernel, s)))
    assert best < 1.3 * bound


@pytest.mark.parametrize("plan", ["", "no such design", "nothing\n{}"])
def test_a_plan_that_names_no_design_has_an_answer(plan: str) -> None:
    """The architect may be a model."""
    reply = CATALOGUE.reply(_ask(ATTENTION, "implement", plan=plan))

    assert isinstance(parse("implement", reply, ""), Nothing)


@pytest.mark.parametrize("task", ["analyse", "step"])
def test_a_version_that_does_not_parse_has_an_answer(task: Task) -> None:
    """Nothing is known about who wrote it."""
    reply = CATALOGUE.reply(_ask(ATTENTION, task, incumbent_source="kernel {"))

    assert isinstance(parse(task, reply, "kernel {"), Nothing)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_analysis_says_what_limits_and_a_search_can_read_it(kernel: str) -> None:
    """The words are all that passes from analyst to optimizer."""
    analysis = parse("analyse", CATALOGUE.reply(_ask(kernel, "analyse")), "")

    assert isinstance(analysis, AnalysisText), analysis
    limit = limit_in(f"{analysis.bottleneck} {analysis.advice}")
    assert limit is not None
    assert weights(limit) != weights(None)


def test_the_toolchain_decides_what_compiles() -> None:
    """After a change of the toolchain other steps are legal."""
    newer = SimCatalogue(V1_2)
    ask = _ask(ATTENTION, "step")

    step = parse("step", newer.reply(ask), ask.incumbent_source)
    assert isinstance(step, SourceText)
    assert legal(ATTENTION, step.source, V1_2)


def test_the_review_lets_everything_pass() -> None:
    """Wrong designs are for screening to find."""
    assert parse("review", CATALOGUE.reply(_ask(ATTENTION, "review")), "") == Review(
        go=True, reason="the catalogue filters nothing"
    )


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    """A misspelt kernel or task is the caller's mistake."""
    with pytest.raises(TargetError, match="decoder_feedforward"):
        CATALOGUE.reply(replace(_ask(ATTENTION, "step"), kernel="x"))
    with pytest.raises(TargetError, match="review"):
        CATALOGUE.reply(replace(_ask(ATTENTION, "review"), task="revue"))


def test_the_catalogue_knows_no_expert() -> None:
    """Experts are what its searches are measured against: none of their lines may be in it."""
    code = "".join(p.read_text() for p in (ROOT / "targets/sim").rglob("*.py"))
    for kernel in KERNELS:
        lines = {
            line.split("#")[0].strip() for line in kernel_source(kernel, "expert").splitlines()
        }
        assert not [line for line in lines if len(line) > 12 and line in code]
