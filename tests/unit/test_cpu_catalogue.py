from dataclasses import replace

import pytest

from decisions.replies import AnalysisText, PlanTexts, SourceText, parse
from events.vocabulary import Nothing, Review, Task
from targets.cpu.baselines import baseline
from targets.cpu.bounds import PREFETCHES, STREAMS, bound_sources
from targets.cpu.catalogue import CpuCatalogue
from targets.cpu.designs import DESIGNS
from targets.cpu.designs.steps import knobs_of
from targets.gemma4.kernels import KERNELS, kernel
from targets.protocol import Ask, TargetError

ALL = frozenset[str]().union(*(d.needs for designs in DESIGNS.values() for d in designs))
CATALOGUE = CpuCatalogue(ALL)
QKV, ATTENTION, FEEDFORWARD = KERNELS


def _ask(kernel: str, task: Task, **changes: object) -> Ask:
    ask = Ask(kernel, task, "", "", frozenset(), "", 1)
    return replace(ask, **changes)  # type: ignore[arg-type]


def _source(kernel: str, name: str) -> str:
    design = next(d for d in DESIGNS[kernel] if d.name == name)
    return design.source(kernel, {})


def _all_steps(kernel: str, source: str, bottleneck: str = "", seed: int = 1) -> list[SourceText]:
    found: list[SourceText] = []
    while True:
        tried = frozenset(step.move for step in found)
        ask = _ask(
            kernel, "step", incumbent_source=source, tried=tried, bottleneck=bottleneck, seed=seed
        )
        parsed = parse("step", CATALOGUE.reply(ask), source)
        if isinstance(parsed, Nothing):
            return found
        assert isinstance(parsed, SourceText), parsed
        assert parsed.move not in tried
        found.append(parsed)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_design_is_proposed_once_and_can_be_implemented(kernel: str) -> None:
    """A plan is all that passes from architect to implementer; then there is nothing left."""
    moves: list[str] = []
    for _ in CATALOGUE.designs(kernel):
        reply = CATALOGUE.reply(_ask(kernel, "design", tried=frozenset(moves)))
        designs = parse("design", reply, "")
        assert isinstance(designs, PlanTexts), designs
        plan = designs.plans[0]
        made = parse("implement", CATALOGUE.reply(_ask(kernel, "implement", plan=plan.plan)), "")
        assert isinstance(made, SourceText), made
        assert made.move == plan.move
        assert made.source.strip() == _source(kernel, made.move.removeprefix("design:")).strip()
        moves.append(plan.move)

    assert len(set(moves)) == len(CATALOGUE.designs(kernel)) >= 10
    last = parse("design", CATALOGUE.reply(_ask(kernel, "design", tried=frozenset(moves))), "")
    assert isinstance(last, Nothing)


def test_designs_are_chosen_by_the_processors_features() -> None:
    """One that the processor cannot run would only waste a build; some run on every processor."""
    counts = [
        len(CpuCatalogue(frozenset(features)).designs(QKV))
        for features in ((), ("avx2", "fma", "f16c"), ALL)
    ]

    assert 4 <= counts[0] < counts[1] < counts[2]


def test_a_plans_parameters_reach_the_source() -> None:
    """Whoever edits the plan changes what is built; what is not a parameter does not."""
    plan = 'vectors {"ROWS": 4, "NONSENSE": 1, "LANES": "x"}\nin words'
    made = parse("implement", CATALOGUE.reply(_ask(QKV, "implement", plan=plan)), "")

    assert isinstance(made, SourceText)
    assert knobs_of(made.source) == knobs_of(_source(QKV, "vectors")) | {"ROWS": 4}


@pytest.mark.parametrize("plan", ["", "no such design", "vectors {", "nothing\n{}"])
def test_any_plan_has_an_answer(plan: str) -> None:
    """The architect may be a model."""
    reply = parse("implement", CATALOGUE.reply(_ask(QKV, "implement", plan=plan)), "")

    assert isinstance(reply, SourceText if plan.startswith("vectors") else Nothing)


@pytest.mark.parametrize(("kernel", "name"), [(k, d.name) for k in KERNELS for d in DESIGNS[k]])
def test_a_step_changes_one_parameter(kernel: str, name: str) -> None:
    """Each edit applies exactly once (or the parser complains), and no move comes twice."""
    source = _source(kernel, name)
    steps = _all_steps(kernel, source)

    assert len({step.move for step in steps}) == len(steps)
    for step in steps:
        changed = knobs_of(step.source).items() - knobs_of(source).items()
        assert [f"step:{knob}={value}" for knob, value in changed] == [step.move]


def test_a_step_that_cannot_matter_is_not_proposed() -> None:
    """The distance between the rows of a block needs a block; where prefetches go, a prefetch."""
    source = _source(FEEDFORWARD, "words")
    blocked = source.replace("#define ROWS 1\n", "#define ROWS 4\n")

    assert not [s for s in _all_steps(FEEDFORWARD, source) if "APART" in s.move]
    assert not [s for s in _all_steps(FEEDFORWARD, source) if "LOCALITY" in s.move]
    assert [s for s in _all_steps(FEEDFORWARD, blocked) if "APART" in s.move]


def test_the_bottleneck_decides_what_is_tried_first() -> None:
    """An analyst who is not heard is a waste."""
    source = _source(FEEDFORWARD, "words")

    assert "PREFETCH" in _all_steps(FEEDFORWARD, source, "memory-bound")[0].move
    assert "ROWS" in _all_steps(FEEDFORWARD, source, "bound by decoding")[0].move
    assert {s.move for s in _all_steps(FEEDFORWARD, source, "memory-bound", seed=5)} == {
        s.move for s in _all_steps(FEEDFORWARD, source, seed=6)
    }


def test_a_source_without_parameters_has_no_steps() -> None:
    """The baseline is nobody's design."""
    assert _all_steps(QKV, baseline(QKV)) == []


@pytest.mark.parametrize("task", ["design", "implement", "analyse", "step", "review"])
def test_a_reply_depends_on_what_is_asked_alone(task: Task) -> None:
    """A catalogue without memory may be asked in any process, and again after a crash."""
    source = _source(QKV, "vectors")
    ask = _ask(QKV, task, incumbent_source=source, plan="vectors {}", seed=3)

    assert CATALOGUE.reply(ask) == CpuCatalogue(ALL).reply(ask)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_analysis_names_a_bottleneck_of_every_source(kernel: str) -> None:
    """Whoever wrote it: the baseline's is decoding, a design knows its own."""
    sources = [baseline(kernel), *(d.source(kernel, {}) for d in DESIGNS[kernel])]
    for source in sources:
        reply = CATALOGUE.reply(_ask(kernel, "analyse", incumbent_source=source))
        analysis = parse("analyse", reply, "")
        assert isinstance(analysis, AnalysisText), analysis
        assert "bound" in analysis.bottleneck


def test_the_review_lets_everything_pass() -> None:
    """Wrong designs are for screening to find."""
    assert parse("review", CATALOGUE.reply(_ask(QKV, "review")), "") == Review(
        go=True, reason="the catalogue filters nothing"
    )


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    """A misspelt kernel or task is the caller's mistake."""
    with pytest.raises(TargetError, match="decoder_feedforward"):
        CATALOGUE.designs("decoder")
    with pytest.raises(TargetError, match="review"):
        CATALOGUE.reply(replace(_ask(QKV, "review"), task="revue"))


@pytest.mark.parametrize("name", KERNELS)
def test_bounds_read_every_weight_buffer(name: str) -> None:
    """A bound that left bytes out would be one that kernels can beat."""
    chosen = kernel(name, "full")
    sources = bound_sources(chosen)

    assert len(set(sources.values())) == len(STREAMS) * len(PREFETCHES)
    for source in sources.values():
        for buffer in chosen.buffers:
            part = f"a->{buffer.name}, {buffer.n_bytes}, total"
            assert (part in source) == (buffer.part == "weight")


def test_designs_come_again_with_what_steps_have_tuned() -> None:
    """A design that lost untuned to a tuned one gets the same parameters."""
    designs = CATALOGUE.designs(FEEDFORWARD)
    shuffle = next(d for d in designs if d.name == "shuffle")
    tried = frozenset(f"design:{d.name}" for d in designs) | {"design:table ROWS=4"}
    best = designs[-1].source(FEEDFORWARD, {"ROWS": 4, "PREFETCH": 512})
    ask = replace(_ask(FEEDFORWARD, "design"), incumbent_source=best, tried=tried)

    drawn = parse("design", CATALOGUE.reply(ask), "")
    assert isinstance(drawn, PlanTexts)
    plan = drawn.plans[0]
    draft = parse("implement", CATALOGUE.reply(replace(ask, task="implement", plan=plan.plan)), "")

    assert isinstance(draft, SourceText)
    assert draft.move == plan.move == "design:shuffle ROWS=4 PREFETCH=512"
    assert draft.source == shuffle.source(FEEDFORWARD, {"ROWS": 4, "PREFETCH": 512})
