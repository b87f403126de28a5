"""The operator's commands, each in a process of its own, on a run that goes on meanwhile."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from events.log import holds_log, read
from events.projections.state import State, replay
from events.projections.tree import Status
from tests.support.cli import ROOT, command, kernelwright

pytestmark = pytest.mark.timeout(300)

CAMPAIGN = """
name = "fake"
target = "slow"
kernels = ["alpha", "beta"]

[search]
max_candidates = 40

[acceptance]
noise_pairs = 6
final_pairs = 6
"""
PLUGIN = """
import time
from tests.support.fake_target import FakeTarget

class SlowTarget(FakeTarget):
    def measure(self, *args, **kwargs):
        time.sleep(0.2)
        return super().measure(*args, **kwargs)

def make(preset):
    return SlowTarget()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a campaign of a target lies that takes its time; the target is a plug-in."""
    about = tmp_path / "plugin" / "slow_plugin-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow_plugin\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[kernelwright.targets]\nslow = slow_plugin:make\n", encoding="ascii"
    )
    (about.parent / "slow_plugin.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", f"{about.parent}{os.pathsep}{ROOT}")
    (tmp_path / "slow.toml").write_text(CAMPAIGN)
    return tmp_path


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run of the campaign in a process of its own, which does not outlive the test."""
    with subprocess.Popen(
        command("run", "slow.toml", "--out", "r", *options),
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def state_when(run: Path, holds: Callable[[State], bool]) -> State:
    """Wait for a state of a run."""
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s:
        state = replay(read(run)) if holds_log(run) else State()
        if state.tree.branches and holds(state):
            return state
        time.sleep(0.1)
    raise AssertionError(f"the run has not come to it: {[r.event.kind for r in read(run)][-5:]}")


def order(folder: Path, name: str, *words: str, status: int = 0) -> str:
    """Give an order; return the line that it is answered with."""
    done = kernelwright(name, "r", *words, cwd=folder, timeout_s=60)
    assert done.returncode == status, done.stdout + done.stderr
    (line,) = (done.stdout + done.stderr).splitlines()
    return line


def test_every_order_takes_effect_and_stands_in_the_report(folder: Path) -> None:
    """Given to a live run, to a paused one, to one that is stopped; and audit derives it all."""
    run = folder / "r"
    with running(folder, "--local") as process:
        accepted = state_when(run, lambda state: bool(state.tree.branches["alpha"].accepts))
        assert order(folder, "hint", "alpha", "knob 3 is best").startswith("delivered: record ")
        assert "there are: alpha, beta" in order(folder, "hint", "gamma", "x", status=2)
        assert "c1 is a baseline" in order(folder, "veto", "c1", "--why", "x", status=2)

        assert order(folder, "pause").startswith("delivered: record ")
        paused = state_when(run, lambda state: not state.pending)
        assert order(folder, "pause", status=2) == "kernelwright: the run is paused already"
        assert replay(read(run)).seq == paused.seq

        best = paused.tree.incumbent("alpha").candidate
        assert order(folder, "veto", f"c{best}", "--why", "too odd").startswith("delivered: ")
        vetoed = replay(read(run))
        assert vetoed.tree.nodes[best].status is Status.WITHDRAWN
        assert vetoed.tree.incumbent("alpha").candidate != best

        assert "no limit to change" in order(folder, "budget", "--device-hours", "+3", status=2)
        assert order(folder, "budget", "--device-hours", "2").startswith("delivered: ")
        assert order(folder, "budget", "--device-hours", "+1", "--tokens=5").startswith("delivered")
        assert "device_s cannot be 0.036" in order(
            folder, "budget", "--device-hours", "0.00001", status=2
        )
        assert order(folder, "stop").startswith("delivered: record ")
        process.communicate(timeout=60)
        assert process.returncode == 130

    limits = replay(read(run)).spending.limits
    assert (limits.device_s, limits.tokens) == (3 * 3600, 5)
    assert accepted.seq < paused.seq
    assert "is not running, so there is nothing to stop" in order(folder, "stop", status=2)
    assert order(folder, "resume") == (
        "queued: the run is not running; it takes effect when it goes on"
    )
    with running(folder, "--local") as process:
        process.communicate(timeout=200)
        assert process.returncode == 0
    for words in ("audit", "report", "tree"):
        done = kernelwright(words, run, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        said = (run / "report.html").read_text() if words == "report" else done.stdout
        assert words == "audit" or ("knob 3 is best" in said and "too odd" in said)
        assert words == "audit" or f"c{best} vetoed by the operator" in said


@pytest.mark.ray
def test_a_run_on_ray_waits_and_goes_on(folder: Path) -> None:
    """Its actors stay; what they were at is answered."""
    run = folder / "r"
    with running(folder) as process:
        state_when(run, lambda state: state.ledger.jobs > 6)
        assert order(folder, "pause").startswith("delivered: record ")
        paused = state_when(run, lambda state: not state.pending)
        time.sleep(2)
        assert replay(read(run)).seq == paused.seq
        assert order(folder, "resume").startswith("delivered: record ")
        process.communicate(timeout=200)
        assert process.returncode == 0
    assert kernelwright("audit", run, cwd=folder).returncode == 0
