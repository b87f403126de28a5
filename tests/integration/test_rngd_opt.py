"""The Rust language of RNGD against stand-ins for its toolchain and its service."""

from pathlib import Path

import pytest

from scripts.doctor import CHECKS
from targets.profiler.schedule import read
from targets.protocol import (
    BuildFailed,
    Built,
    CostModel,
    Measured,
    MeasureFailed,
    TargetError,
)
from targets.rngd.opt import build as building
from targets.rngd.opt.arena import GRACE_S, MAX_JOB_S, PROGRAM, Arena
from targets.rngd.opt.artifact import Artifact, pack, unpack
from targets.rngd.opt.jobs import DEVICE_HZ
from targets.rngd.opt.programs import ask
from targets.rngd.opt.target import PRESET, OptTarget
from targets.rngd.opt.toolchain import PLUGIN, VERSION, toolchain
from targets.rngd.target import rngd_target
from tests.support.furiosa_opt import FakeTime, Place, device
from tests.support.furiosa_opt.cargo import binary

KERNEL = "decoder_feedforward"
WAIT_S, POLL_S = 600.0, 150.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A machine with the stand-ins."""
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def target() -> OptTarget:
    """The target, in time that passes only while it waits."""
    return OptTarget((PRESET,), Arena(WAIT_S, POLL_S, FakeTime().clock()))


def built(target: OptTarget, source: str) -> bytes:
    """Build a source that builds."""
    got = target.build(KERNEL, source)
    assert isinstance(got, Built), got
    return got.artifact


def arm_of(source: str) -> bytes:
    """Return what the build of a source would leave, without building it."""
    return pack(Artifact(KERNEL, VERSION, "", 90000, b"{}", binary(source).encode()))


def measured(
    target: OptTarget, *arms: bytes, launches: int = 2, limit_s: float = 600.0
) -> Measured | MeasureFailed:
    """Measure arms in one pair of turns."""
    order = (0, 1, 1, 0) if len(arms) > 1 else (0,)
    checked = (True,) + (False,) * (len(arms) - 1)
    return target.measure(
        KERNEL,
        arms,
        order,
        group=2,
        launches=launches,
        checked=checked,
        seed=5,
        limit_s=limit_s,
    )


def test_a_candidate_is_built_checked_costed_and_measured(place: Place) -> None:
    """The whole way, by the preset; the project itself stays as it is."""
    before = toolchain().project.joinpath("src/device", f"{KERNEL}.rs").read_text()
    target = rngd_target(PRESET)
    assert isinstance(target, CostModel)
    assert isinstance(target, OptTarget)
    slow = built(target, device(cycles=180000))
    fast = built(target, device(cycles=160000, error="0.005"))

    results = target.check(KERNEL, fast, [1, 2])
    cost = target.cost(KERNEL, fast)
    got = measured(target, slow, fast)

    assert [r.passed for r in results] == [True, True]
    assert [r.margin for r in results] == [0.5, 0.5]
    assert cost.cycles == read(cost.schedule).makespan == 90000
    assert isinstance(got, Measured), got
    assert [run.arm for run in got.runs] == [0, 1, 1, 0]
    assert {run.arm: run.launches_s for run in got.runs} == {
        0: (180000 / DEVICE_HZ,) * 2,
        1: (160000 / DEVICE_HZ,) * 2,
    }
    assert got.margins == (1.0, None)
    assert (place.project / "src/device" / f"{KERNEL}.rs").read_text() == before


def test_an_artifact_says_what_it_was_built_from(place: Place, target: OptTarget) -> None:
    """The same source the same content, whatever was built before; a changed project another."""
    one, two = built(target, device()), built(target, device(more="// more\n"))
    contents = [unpack(KERNEL, artifact).content for artifact in (one, two)]
    (place.project / "target").mkdir()
    (place.project / "target" / "stale").write_text("old")

    assert contents[0] != contents[1]
    assert built(target, device()) == one
    (place.project / "build.rs").write_text("")
    assert unpack(KERNEL, built(target, device())).content != contents[0]
    with pytest.raises(ValueError, match="not of sliding"):
        target.cost("sliding_project_qkv", one)
    with pytest.raises(ValueError, match="cut off"):
        target.cost(KERNEL, one[:-30])


def test_a_kernel_is_compiled_by_its_whole_name(place: Place, target: OptTarget) -> None:
    """Names are taken as beginnings otherwise, and the schedule is another kernel's."""
    other = device().replace("90000", "70000")
    (place.project / "src/device" / f"{KERNEL}_wide.rs").write_text(other)

    assert target.cost(KERNEL, built(target, device())).cycles == 90000


@pytest.mark.parametrize(
    ("source", "signature"),
    [
        (device(more="// stand-in: error\n"), "compile: E0308: mismatched types"),
        (device(more="// stand-in: panic\n"), "compile: panic: merge failed"),
        (device(more="// stand-in: no dump\n"), "compile: no schedule"),
        (device().replace("90000", "0"), "rules: too good"),
        (device().replace("90000", "60000"), "rules: too good"),
        (device(more="unsafe {}\n"), "rules: host"),
    ],
)
def test_what_is_no_kernel_is_refused(
    place: Place, target: OptTarget, source: str, signature: str
) -> None:
    """By the rules, by the compiler, or by a schedule that cannot be; an old dump is no answer."""
    (place.project / "kernelwright-schedule.json").write_text('{"instructions": []}')

    got = target.build(KERNEL, source)

    assert isinstance(got, BuildFailed)
    assert got.signature.startswith(signature)


def test_a_refusal_shows_the_line(place: Place, target: OptTarget) -> None:
    """Of the candidate's file."""
    got = target.build(KERNEL, device(more="// stand-in: error\n"))

    assert isinstance(got, BuildFailed)
    assert got.snippet == "const MAKESPAN: u32 = 90000;"
    assert str(place.project) not in got.diagnostics


def test_a_debug_build_is_never_timed(place: Place, target: OptTarget) -> None:
    """It has been."""
    with pytest.raises(TargetError, match="built as debug"):
        target.build(KERNEL, device(more="// stand-in: debug\n"))


def test_a_build_without_end_is_ended(
    place: Place, target: OptTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its verdict is a hang."""
    monkeypatch.setattr(building, "LIMITS", building.LIMITS._replace(wall_s=0.5))
    (place.bin / "cargo").write_text(
        '#!/bin/sh\n[ "$2" = --version ] && echo 0.6.0 && exit\nsleep 60\n'
    )

    got = target.build(KERNEL, device())

    assert isinstance(got, BuildFailed)
    assert got.signature.startswith("compile: hang")


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"word": "FAIL"}, "fail: outputs of decoder_feedforward are off by up to 0.01"),
        ({"error": "NaN"}, "fail: outputs of decoder_feedforward are not finite"),
        ({"more": 'const TWIST: &str = "exit 3";'}, "exit status 3"),
        ({"more": 'const TWIST: &str = "label=x";'}, "lost: not every verdict"),
    ],
)
def test_only_a_pass_on_the_seed_that_was_asked_passes(
    place: Place, target: OptTarget, changes: dict[str, str], detail: str
) -> None:
    """The first that does not is the last."""
    results = target.check(KERNEL, arm_of(device(**changes)), [1, 2])

    assert len(results) == 1
    assert not results[0].passed
    assert detail in results[0].detail


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"swallows": True}, "rejected: no job was named"),
        ({"refusals": 1000}, "quota: 2 other jobs for 600 s"),
        ({"silent": True}, "lost: job b78a63a0: its state is not told"),
        ({"stays": "running"}, "hung: job b78a63a0: still running after 70 s"),
        ({"stays": "queued"}, "lost: job b78a63a0: still queued after 600 s"),
        ({"stays": "cancelled"}, "cancelled: job b78a63a0"),
        ({"stays": "succeeded"}, "lost: its log is empty"),
        ({"no_log": True}, "lost: its log is empty"),
        ({"lines": 2}, "lost: its log shows 0 of 4 runs"),
        ({"exit_code": 9}, "lost: the job's exit status is 9"),
    ],
)
def test_a_job_of_a_bad_service_has_a_named_end_and_no_readings(
    place: Place, target: OptTarget, behaviour: dict[str, object], reason: str
) -> None:
    """No arm is to blame."""
    arm = arm_of(device())
    place.behave(**behaviour)

    got = measured(target, arm, arm)

    assert isinstance(got, MeasureFailed)
    assert got.arm is None
    assert got.reason.startswith(reason)


@pytest.mark.parametrize(
    ("changes", "behaviour", "arm", "reason"),
    [
        ({"word": "FAIL"}, {}, 1, "fail: outputs"),
        ({"error": "inf"}, {}, 1, "fail: outputs"),
        ({"more": 'const TWIST: &str = "echo PXI-601 Execution: Timeout";'}, {}, 1, "hung"),
        ({}, {"lines": 6, "exit_code": 124}, 1, "hung: its log shows 1 of 4 runs"),
        ({"cycles": "none observed"}, {}, None, "no-cycles: 0 of 2"),
    ],
)
def test_an_arm_answers_for_its_own_run(
    place: Place,
    target: OptTarget,
    changes: dict[str, str],
    behaviour: dict[str, object],
    arm: int | None,
    reason: str,
) -> None:
    """And for nothing that was only not counted."""
    good, bad = arm_of(device()), arm_of(device(**changes))
    place.behave(**behaviour)

    got = measured(target, good, bad)

    assert isinstance(got, MeasureFailed)
    assert got.arm == arm
    assert got.reason.startswith(reason)


def test_a_refusal_for_quota_is_tried_again(place: Place, target: OptTarget) -> None:
    """Another job of the account may end."""
    arm = arm_of(device())
    place.behave(refusals=3)

    assert isinstance(measured(target, arm), Measured)
    assert [call[0] for call in place.calls] == ["submit"] * 4 + ["status", "logs"]


def test_a_hung_job_is_cancelled(place: Place) -> None:
    """It would keep one of two places; not before its timeout and some grace are over."""
    time = FakeTime()
    target = OptTarget((PRESET,), Arena(WAIT_S, 20.0, time.clock()))
    arm = arm_of(device())
    place.behave(stays="running")

    measured(target, arm)

    assert ["cancel", "b78a63a0"] in place.calls
    assert MAX_JOB_S + GRACE_S < time.now_s < MAX_JOB_S + GRACE_S + 40


def test_limits_are_looked_at_before_anything_is_submitted(place: Place, target: OptTarget) -> None:
    """A job that cannot end in the time that the service gives is not sent."""
    arm = arm_of(device())

    got = measured(target, arm, launches=300)

    assert isinstance(got, MeasureFailed)
    assert got.reason.startswith("rejected: the job takes about 80 s, the service allows 70")
    assert not (place.service / "calls").exists()
    assert isinstance(measured(target, arm, limit_s=45.2), Measured)
    assert place.calls[0][-1] == "46"


def test_what_is_missing_or_of_another_version_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do; `doctor` says the same, and no campaign of another target needs it."""
    target = rngd_target(PRESET)
    assert target.fingerprint()["device"] == f"RNGD, device counter, through {PROGRAM}"
    (place.bin / PROGRAM).unlink()
    assert target.fingerprint()["device"].startswith("none")
    line = next(check for check in CHECKS if check.__name__ == "_rngd_opt")
    assert line().ok
    assert f"{PROGRAM} is missing" in line().text

    place.pin("0.7.0")
    with pytest.raises(TargetError, match=r"has furiosa-opt-std 0\.7\.0; pin it to 0\.6\.0"):
        target.fingerprint()
    place.version("0.7.0")
    with pytest.raises(TargetError, match=rf"{PLUGIN} is 0\.7\.0.*install {PLUGIN} 0\.6\.0"):
        target.build(KERNEL, device())
    (place.project / "kernelwright" / KERNEL / "slow.rs").unlink()
    with pytest.raises(TargetError, match=r"slow\.rs"):
        target.sources(KERNEL)
    (place.bin / PLUGIN).unlink()
    found = line()
    assert (found.ok, found.needed) == (False, False)
    assert f"{PLUGIN} is not on the path: install" in found.text


def test_sources_are_the_projects(place: Place, target: OptTarget) -> None:
    """Nothing in this language comes with Kernelwright."""
    sources = target.sources(KERNEL)

    assert sources.baseline == device()
    assert list(sources.bounds) == ["loads"]
    assert len({sources.canary_wrong, sources.canary_slow, sources.baseline}) == 3


def test_a_program_without_end_is_ended_with_its_children() -> None:
    """And says no word of what it printed as if it were an answer."""
    said = ask(("/bin/sh", "-c", "echo begun; sleep 60 & wait"), 0.3)

    assert said.status is None
    assert said.reason == "no answer in time"
