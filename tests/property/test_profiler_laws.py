"""Laws of profiles, whatever the schedule."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from targets.profiler.breakdown import profile
from targets.profiler.schedule import read
from targets.profiler.text import text
from targets.profiler.timeline import svg
from tests.support.schedules import dump, instruction, tensor

TENSORS = st.lists(st.integers(0, 5), max_size=2)
ENGINES = st.sampled_from(["DmaEngine", "MainContext", "SubContext", "Noop"])


@st.composite
def instructions(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Any instructions at all: they may overlap, take no time and need each other in circles."""
    return [
        instruction(begin, begin + draw(st.integers(0, 30)), draw(ENGINES), draw(TENSORS), makes)
        for begin, makes in draw(
            st.lists(st.tuples(st.integers(0, 90), TENSORS), min_size=1, max_size=12)
        )
    ]


@given(instructions())
def test_time_adds_up(found: list[dict[str, Any]]) -> None:
    """Makespan is the last end, an engine is busy or idle, the critical path leaves nothing out."""
    told = profile(read(dump(found, [tensor(i, f"t{i}", size=i) for i in range(6)])))

    assert told.makespan == max(i["lifetime"]["end"] for i in found)
    assert all(engine.busy + engine.idle == told.makespan for engine in told.engines)
    on_path = [told.operations[wait.operation] for wait in told.path]
    assert sum(o.cycles for o in on_path) + told.waiting == told.makespan
    assert all(a.end <= b.begin for a, b in pairwise(on_path))
    idle = {e.name: sum(g.cycles for g in told.gaps if g.engine == e.name) for e in told.engines}
    assert all(idle[engine.name] == engine.idle for engine in told.engines)
    assert text(told).startswith(f"makespan {told.makespan:,} cycles, ")
    assert svg(told).endswith("</svg>\n")


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.data())
def test_the_path_of_a_chain_is_the_chain(lengths: list[int], data: st.DataObject) -> None:
    """Where each operation needs the one before, on whatever engine, none of them is hidden."""
    begin, found = 0, []
    for number, length in enumerate(lengths):
        engine = data.draw(ENGINES)
        found.append(instruction(begin, begin + length, engine, [number], [number + 1]))
        begin += length
    told = profile(read(dump(found)))

    assert [wait.operation for wait in told.path] == list(range(len(lengths)))
    assert told.waiting == 0
