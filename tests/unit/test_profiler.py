"""The profiler on schedules made by hand, whose figures are known."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from scripts.main import main
from sim.npu.dump import schedule_json
from sim.npu.schedule import schedule
from sim.npu.toolchain import V1_0
from targets.profiler.breakdown import Profile, profile
from targets.profiler.schedule import ScheduleError, linear, read
from targets.profiler.text import text
from targets.profiler.timeline import svg
from tests.support.npu_kernels import kernel_program
from tests.support.schedules import dump, instruction, tensor, two_loads


def of(instructions: Sequence[dict[str, Any]], *tensors: dict[str, Any]) -> Profile:
    return profile(read(dump(instructions, tensors)))


def path(found: Profile) -> list[str]:
    return [found.operations[wait.operation].name for wait in found.path]


def test_a_known_critical_path_is_found() -> None:
    found = profile(read(two_loads()))

    assert found.makespan == 310
    assert path(found) == ["w1", "w2", "y2", "y2"]
    assert [wait.reason for wait in found.path] == ["launch", "engine", "data", "data"]
    assert found.waiting == 0
    assert {group.name: group.critical for group in found.groups if group.kind == "Einsum"} == {
        "y1": 0,
        "y2": 40,
    }


def test_the_turns_of_a_loop_are_read_one_by_one() -> None:
    """A dump writes loops out, and numbers what is in them by turn and place."""
    turns = [instruction(10 * i, 10 * i + 10) | {"index": f"5[{i}].0"} for i in range(3)]

    assert [(o.name, o.begin) for o in of(turns).operations] == [
        ("instruction 5[0].0", 0),
        ("instruction 5[1].0", 10),
        ("instruction 5[2].0", 20),
    ]


def test_engines_overlap_and_idle_as_they_do() -> None:
    found = profile(read(two_loads()))

    assert [(e.name, e.busy, e.idle, e.n_operations) for e in found.engines] == [
        ("DmaEngine", 270, 40, 3),
        ("MainContext", 70, 240, 2),
    ]
    assert (found.both, found.neither) == (30, 0)


def test_a_gap_names_what_it_waits_for() -> None:
    first = profile(read(two_loads())).gaps[0]

    assert (first.engine, first.begin, first.cycles) == ("MainContext", 130, 120)
    assert first.before is not None
    assert first.after is not None
    assert (first.before.name, first.reason, first.after.name) == ("y2", "data", "w2")


def test_an_operation_waits_for_the_buffer_that_it_overwrites() -> None:
    """A load into a buffer that is being read begins when the reader has ended."""
    found = of(
        [
            instruction(0, 10, "DmaEngine", makes=[1]),
            instruction(10, 60, reads=[1], makes=[2]),
            instruction(60, 70, "DmaEngine", makes=[1]),
        ],
        tensor(1, "w"),
    )

    assert [wait.reason for wait in found.path] == ["launch", "data", "buffer"]


def test_operations_without_cycles_that_wait_for_each_other_end_the_path() -> None:
    found = of([instruction(5, 5, "Noop", [1], [2]), instruction(5, 5, "Noop", [2], [1])])

    assert found.waiting == found.makespan == 5


def test_bytes_come_from_the_dump_or_from_the_targets_rule() -> None:
    told = profile(read(two_loads()))
    ruled = profile(read(two_loads(), bytes_of=linear(20, 10.0)))

    assert [t.n_bytes for t in told.transfers] == [3000, 1000, 20]
    assert [t.n_bytes for t in ruled.transfers] == [1300, 800, 0]


def test_memory_is_what_lives_at_once() -> None:
    """A buffer that ends where another begins has made room for it."""
    (memory,) = profile(read(two_loads())).memories

    assert (memory.name, memory.peak, memory.at) == ("Sram", 4010, 100)


def test_a_tensor_of_a_loop_lives_in_each_iteration_for_itself() -> None:
    found = of(
        [
            instruction(0, 10, "DmaEngine", makes=[1]),
            instruction(10, 20, reads=[1], makes=[2]),
            instruction(50, 60, "DmaEngine", makes=[1]),
            instruction(60, 70, reads=[1], makes=[2]),
        ],
        tensor(1, "w", size=100),
    )

    assert found.memories[0].levels == ((0, 100), (20, 0), (50, 100), (70, 0))


def test_placeholders_are_no_sizes() -> None:
    """A dump that gives every tensor the same size and shape says nothing about memory."""
    same = [tensor(i, f"t{i}", size=8192, shape="[]") for i in range(3)]
    instructions = [instruction(0, 9, makes=[0, 1, 2])]

    assert of(instructions, *same).memories == ()
    known = read(dump(instructions, same), sizes={"t0": 5, "t1": 6})
    assert profile(known).memories[0].peak == 11


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "the whole file"),
        ("[" * 100_000, "the whole file"),
        ("[]", "the whole file"),
        ("{}", "instructions"),
        ('{"instructions": []}', "instructions"),
        ('{"instructions": [{"index": 0}]}', "instructions.0.lifetime"),
        (dump([instruction(0, 1), instruction(9, 3)]), "instructions.1.lifetime"),
        (dump([instruction(-1, 3)]), "instructions.0.lifetime.begin"),
        (dump([instruction(0, 10**30)]), "instructions.0.lifetime.end"),
        (dump([instruction(0, 1)], [{"index": "x"}]), "tensors.0.index"),
    ],
)
def test_garbage_is_refused_with_its_place(content: str, place: str) -> None:
    with pytest.raises(ScheduleError, match=f"no schedule: {place}: "):
        read(content)


def test_what_a_dump_says_can_neither_move_a_cursor_nor_leave_the_picture() -> None:
    evil = "\x1b[2J\n</svg><script>"
    found = of([instruction(0, 9, makes=[1])], tensor(1, evil, size=3))

    assert "\x1b" not in text(found)
    assert len(text(found).splitlines()) == len(text(of([instruction(0, 9)])).splitlines()) + 1
    assert "<script>" not in svg(found)


def test_the_simulated_compilers_schedule_is_read_whole() -> None:
    plan = schedule(kernel_program("decoder_feedforward", "baseline"), V1_0)
    found = profile(read(schedule_json(plan)))

    assert found.makespan == round(plan.makespan)
    assert sum(t.n_bytes or 0 for t in found.transfers) == pytest.approx(99_663_374, rel=1e-4)
    assert {m.name for m in found.memories} == {"Sram", "Trf", "Vrf"}
    assert max(m.peak for m in found.memories) < 512 * 1024
    assert 20 <= len(text(found).splitlines()) <= 35


def test_the_picture_of_thousands_of_instructions_stays_small() -> None:
    plan = schedule(kernel_program("decoder_feedforward", "baseline"), V1_0)
    picture = svg(profile(read(schedule_json(plan))))

    assert len(picture) < 300_000
    root = ET.fromstring(picture)
    assert [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")].count("DmaEngine") == 1


def test_the_command_prints_the_profile_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(two_loads())
    picture = tmp_path / "plan.svg"

    assert main(["profile", str(tmp_path / "plan.json"), "--svg", str(picture)]) == 0
    assert capsys.readouterr().out.startswith("makespan 310 cycles, 5 operations: hand\n")
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_the_command_says_in_one_line_what_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"

    assert main(["profile", str(path)]) == 2
    path.write_text(json.dumps({"instructions": 7}))
    assert main(["profile", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"kernelwright: {path} cannot be read (No such file or directory)"
    assert lines[1].startswith(f"kernelwright: {path}: no schedule: instructions: ")
    assert len(lines) == 2


def test_a_picture_replaces_one_of_ours_alone(tmp_path: Path) -> None:
    """A slip of the hand must not cost a file."""
    (tmp_path / "plan.json").write_text(two_loads())
    command = ["profile", str(tmp_path / "plan.json"), "--svg"]
    theirs = tmp_path / "theirs.svg"
    theirs.write_text("<svg></svg>")

    assert main([*command, str(theirs)]) == 2
    assert main([*command, str(tmp_path / "plan.json")]) == 2
    assert main([*command, str(tmp_path / "ours.svg")]) == 0
    assert main([*command, str(tmp_path / "ours.svg")]) == 0

    assert theirs.read_text() == "<svg></svg>"
    assert (tmp_path / "plan.json").read_text() == two_loads()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--bytes-per-cycle", rate) for rate in ("nan", "inf", "1e308", "-5", "0", "x")),
        *(("--setup-cycles", cycles) for cycles in ("9" * 400, "9" * 5000, "-1", "1.5")),
    ],
)
def test_a_figure_that_no_device_has_is_refused(
    tmp_path: Path, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(two_loads())
    rate = ["--bytes-per-cycle", "1.5", option, value]

    with pytest.raises(SystemExit) as stopped:
        main(["profile", str(tmp_path / "plan.json"), *rate])

    assert stopped.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err


def test_a_profile_takes_as_long_as_its_schedule_is() -> None:
    """However many engines and inputs it has: a dump may be hostile, and a square takes minutes."""
    wide = instruction(0, 1, reads=range(50_000))
    engines = [instruction(i, i + 1, f"e{i}") for i in range(20_000)]
    began = process_time()

    of([wide, *engines], *(tensor(i, f"t{i}", size=i + 1) for i in range(50_000)))

    assert process_time() - began < 15
