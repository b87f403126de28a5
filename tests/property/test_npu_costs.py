"""Laws of the NPU's cost models: they are physics, and hold for every program."""

import json
from functools import cache

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sim.npu.device import device_time
from sim.npu.dump import schedule_json
from sim.npu.latency import latencies, run_rate
from sim.npu.program import Program
from sim.npu.schedule import schedule
from sim.npu.toolchain import TOOLCHAINS, V1_0, Toolchain
from tests.support.npu_kernels import DATASHEET_CYCLES, kernel_source, legal, small_program
from tests.support.npu_mutations import mutations
from tests.support.npu_programs import programs

TWO_TO = st.integers(0, 4).map(lambda k: 2**k)


@given(st.integers(1, 8), st.integers(1, 8))
def test_a_longer_aligned_run_is_never_slower_up_to_256_bytes(a: int, b: int) -> None:
    """HBM hands out 256 bytes at once; less of them is waste."""
    short, long = sorted((32 * a, 32 * b))

    assert run_rate(short, V1_0.device) <= run_rate(long, V1_0.device)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[str, str]:
    """Return one program at two sizes: the second moves more, in runs of the same length."""
    slices = draw(st.sampled_from([64, 128, 256]))
    cluster = draw(st.sampled_from(["one", "H:2", "copy:2"]))
    copies = draw(TWO_TO)
    few, more = sorted(draw(st.lists(st.integers(1, 24), min_size=2, max_size=2, unique=True)))
    row = 32 * draw(st.integers(1, 40))
    tiles = draw(st.sampled_from([1, 2, 4]))

    def source(rows: int) -> str:
        return f"""axis H = {rows * tiles * 2 * slices // copies}
axis K = {row}
hbm w: bf16[H, K] weight
hbm y: f32[H] inout
place p = cluster {cluster}, slices H:{slices // copies} copy:{copies}
for t in 0..{tiles} over H buffers 2 {{
  load a from w to p block {row}
  s = main a | mul self | sum K | commit dm f32
}}
store s to y"""

    return source(few), source(more)


@settings(max_examples=60, deadline=None)
@given(sizes())
def test_more_bytes_are_never_faster(pair: tuple[str, str]) -> None:
    """All else equal: the same commands on more rows."""
    few, more = (small_program(source) for source in pair)

    assert device_time(few, V1_0).cycles <= device_time(more, V1_0).cycles
    assert schedule(few, V1_0).makespan <= schedule(more, V1_0).makespan


@cache
def mutants(kernel: str) -> tuple[str, ...]:
    """Return the small changes of an expert, legal or not."""
    return tuple(source for _, source in mutations(kernel_source(kernel, "expert")))


@st.composite
def variants(draw: st.DrawFn) -> Program:
    """Return a legal program two small changes away from an expert."""
    kernel = draw(st.sampled_from(sorted(DATASHEET_CYCLES)))
    again = tuple(source for _, source in mutations(draw(st.sampled_from(mutants(kernel)))))
    program = legal(kernel, draw(st.sampled_from(again)))
    assume(program is not None)
    assert program
    return program


CASES = st.tuples(
    st.one_of(variants(), programs().map(lambda sample: sample.program)),
    st.sampled_from(list(TOOLCHAINS.values())),
)


@settings(max_examples=30, deadline=None)
@given(CASES)
def test_no_schedule_beats_its_engines_or_its_longest_chain(
    case: tuple[Program, Toolchain],
) -> None:
    """Whatever the program, work is neither lost nor done before its inputs are there."""
    program, toolchain = case
    plan = schedule(program, toolchain)
    ends: list[float] = []
    for command, cost in zip(plan.commands, plan.costs, strict=True):
        inputs = [ends[i] for i in (*command.after, *command.synced)]
        ends.append(max(inputs, default=toolchain.static.start) + cost.cycles)
    dma = [c.site.engine == "dma" for c in plan.commands]
    busy = sum(c.cycles for c, d in zip(plan.costs, dma, strict=True) if d)

    assert plan.makespan >= max([*ends, busy])


@settings(max_examples=30, deadline=None)
@given(CASES)
def test_the_device_runs_every_command_once_in_every_cluster_that_has_it(
    case: tuple[Program, Toolchain],
) -> None:
    """The walk over the clusters neither loses nor repeats one, and is the same every time."""
    program, toolchain = case
    run = device_time(program, toolchain)
    plan = schedule(program, toolchain)
    costs = latencies(plan.commands, toolchain)

    assert run == device_time(program, toolchain)
    assert json.loads(schedule_json(plan))["title"] == program.kernel
    for number, cluster in enumerate(run.clusters):
        mine = [i for i in plan.order if plan.commands[i].site.n_clusters > number]
        assert [s.command for s in cluster] == mine
        for s in cluster:
            assert s.end - s.begin >= costs[s.command].fixed - 1e-6
