"""Commands of the simulated NPU and the schedule that its compiler believes in."""

import json
from itertools import pairwise

import pytest

from sim.npu.dump import schedule_json
from sim.npu.expand import ENGINES, Command, expand
from sim.npu.schedule import schedule
from sim.npu.toolchain import V1_0, V1_1, V1_2
from tests.support.npu_kernels import DATASHEET_CYCLES, Version, kernel_program, small_program

HEAD = """axis H = 4096
axis K = 256
hbm w: f8e4m3[H, K] weight
hbm y: bf16[H] inout
hbm z: bf16[H] scratch
place rows = cluster H:2, slices H:256
"""
LOOKUP = "lookup bf16 {}| commit dm bf16"


def commands(body: str) -> tuple[Command, ...]:
    """Return the commands of statements on `HEAD`."""
    return expand(small_program(HEAD + body))


def test_a_loop_is_one_command_a_tile_and_tiles_meet_only_themselves() -> None:
    """A tile depends on the tile that it reads, so that loads run ahead of passes."""
    body = "for t in 0..4 over H buffers 4 { load a from w to rows\nb = main a | " + LOOKUP.format(
        ""
    )
    tiles = commands(body + " }")

    assert [c.iterations for c in tiles] == [(i,) for i in range(4) for _ in "ab"]
    assert [c.after for c in tiles] == [(), (0,), (), (2,), (), (4,), (), (6,)]


def test_a_reader_of_coarser_tiles_waits_for_all_that_it_covers() -> None:
    """Two loops may cut one axis differently: half of it is two of four quarters."""
    both = commands(
        "for t in 0..4 over H { load a from w to rows }\n"
        "for u in 0..2 over H { b = main a | lookup bf16 | commit dm bf16 }"
    )

    assert [c.after for c in both[4:]] == [(0, 1), (2, 3)]


def test_a_tile_waits_for_the_readers_of_the_tile_whose_buffer_it_takes() -> None:
    """With two buffers the third load overwrites what the first pass has read."""
    tiles = commands(
        "for t in 0..4 over H buffers 2 "
        "{ load a from w to rows\nb = main a | lookup bf16 | commit dm bf16 }"
    )

    assert [c.after for c in tiles if c.site.engine == "dma"] == [(), (), (1,), (3,)]


def test_a_tensor_used_after_its_loop_has_room_for_all_tiles() -> None:
    """Buffers are only for what lives and dies in the loop."""
    tiles = commands(
        "for t in 0..4 over H buffers 1 { load a from w to rows }\n"
        "b = main a | lookup bf16 | commit dm bf16"
    )

    assert [c.after for c in tiles] == [(), (), (), (), (0, 1, 2, 3)]


def test_a_load_of_a_stored_tensor_is_synced_with_every_store() -> None:
    """Another cluster may have written what this one reads."""
    store_load = commands("load a from y to rows\nstore a to z\nload b from z to rows")

    assert [(c.after, c.synced) for c in store_load] == [((), ()), ((0,), ()), ((), (1,))]


def test_a_store_waits_for_earlier_loads_of_its_tensor() -> None:
    """They want the value from before."""
    update = commands("load a from y to rows\nload b from y to rows\nstore a to y")

    assert update[2].after == (0, 1)


@pytest.mark.parametrize(("keep", "loaded"), [("", 3), ("keep ", 1)])
def test_a_kept_table_is_loaded_once(keep: str, loaded: int) -> None:
    """Loading a table costs more than most passes."""
    body = "load a from w to rows\n" + "\n".join(
        f"{b} = main a | {LOOKUP.format(keep)}" for b in "bcd"
    )

    assert [c.table for c in commands(body)[1:]].count("f8e4m3") == loaded


def test_a_switch_takes_the_place_of_a_kept_table() -> None:
    """The two share memory in the unit; the manual does not say so."""
    body = """place alone = cluster copy:2, slices idle:256
load a from w to rows
load x from y to alone
b = main a | lookup bf16 keep | commit dm bf16
s = main x | switch broadcast | commit dm bf16
c = main a | lookup bf16 keep | commit dm bf16"""

    assert [c.table for c in commands(body)] == [None, None, "f8e4m3", None, "f8e4m3"]


@pytest.mark.parametrize("kernel", DATASHEET_CYCLES)
@pytest.mark.parametrize("version", ["baseline", "expert"])
def test_a_schedule_keeps_order_and_runs_one_command_an_engine(
    kernel: str, version: Version
) -> None:
    """Everything waits for its inputs, and nobody does two things at once."""
    plan = schedule(kernel_program(kernel, version), V1_0)
    ends = [b + c.cycles for b, c in zip(plan.begins, plan.costs, strict=True)]

    for command, begin in zip(plan.commands, plan.begins, strict=True):
        assert all(ends[i] <= begin for i in (*command.after, *command.synced))
    for engine in ENGINES:
        mine = [i for i in plan.order if plan.commands[i].site.engine == engine]
        assert all(ends[a] <= plan.begins[b] for a, b in pairwise(mine))


def test_the_dump_has_the_vendors_fields_and_its_last_end_is_the_makespan() -> None:
    """One profiler reads this schedule and the real compiler's."""
    plan = schedule(kernel_program("decoder_feedforward", "expert"), V1_0)
    dump = json.loads(schedule_json(plan))
    first, run = dump["instructions"][0], dump["instructions"][2]

    assert list(dump) == ["title", "total_memory", "page_size", "instructions", "tensors"]
    assert max(i["lifetime"]["end"] for i in dump["instructions"]) == round(plan.makespan)
    assert [i["index"] for i in dump["instructions"]] == list(range(len(plan.commands) + 1))
    assert first["tpe"] == "DmaLoad"
    assert run["contexts"] == ["MainContext", "VectorEngine"]
    names = [dump["tensors"][i]["name"] for i in first["input_tensors"]]
    assert names == ["residual", "w_pre"]
    assert first["description"].startswith("--> decoder_feedforward.npu:")


def test_the_compilers_model_follows_its_version() -> None:
    """1.2 bakes the f4 table in, and the compiler knows; the sync of 1.1 it does not."""
    spans = [
        schedule(kernel_program("decoder_feedforward", "baseline", v), v).makespan
        for v in (V1_0, V1_1, V1_2)
    ]

    assert spans[0] == spans[1]
    assert spans[2] < 0.8 * spans[1]
