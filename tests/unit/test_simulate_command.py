"""`kernelwright simulate`, and `run` of a campaign whose target is on a virtual clock."""

import json
import pickle
import shlex
import tempfile
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from actors import simulation
from actors.opening import first_event
from events.blobs import Blobs
from events.log import EventLog, read
from events.projections.state import replay
from scripts import main as command
from scripts import run as run_command
from scripts import simulate
from scripts.simulate import World
from sim.disk import SimulatedDisk
from sim.rates import Rates
from targets import registry
from tests.support.runs import SECRET, campaign, director, ticking
from tests.support.timed_target import TimedTarget

CAMPAIGN = """\
name = "small"
target = "{target}"
kernels = ["alpha"]

[search]
max_candidates = {n}

[acceptance]
noise_pairs = 6
final_pairs = 6
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The timed fake target, as if it were installed under two names; run folders are ours."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    points = [EntryPoint(name, "-", registry.GROUP) for name in ("fake", simulate.TARGET)]

    def entry_points(group: str, name: str | None = None) -> Sequence[EntryPoint]:
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda preset: TimedTarget())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(CAMPAIGN.format(target="fake", n=6))
    return path


class LyingDisk(SimulatedDisk):
    """Says that it has synced, and has not."""

    def sync(self, fd: int) -> None:
        """Do nothing."""


def test_it_reports_speed_faults_and_violations(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line per campaign, then the figures of all; nothing was violated, so the status is 0."""
    assert simulate.main([str(small), "--seeds", "1..2", "--days", "2"]) == 0

    one, two, total, faults, violations = capsys.readouterr().out.splitlines()
    assert one.startswith("seed 1: 0.0")
    assert two.startswith("seed 2: 0.0")
    assert "6 candidates" in one
    assert total.startswith("2 campaigns, 0.")
    assert total.endswith("days per second")
    assert faults.startswith("faults: ")
    assert violations == "violations: 0"


def test_a_violation_comes_with_the_command_that_shows_it_again(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 1, the run folder is kept, and the words reproduce the seed."""
    rates = tmp_path / "power cuts.toml"
    rates.write_text("power = 400.0\n")
    monkeypatch.setattr(simulation, "SimulatedDisk", LyingDisk)
    words = [str(small), "--seeds", "3..3", "--days", "2", "--faults", str(rates), "--json"]
    assert simulate.main(words) == 1

    said = json.loads(capsys.readouterr().out)
    assert "acknowledged" in said["violation"]
    assert Path(said["run"]).is_dir()
    kernelwright, name, *again = shlex.split(said["again"])
    assert (kernelwright, name) == ("kernelwright", "simulate")
    assert simulate.main([*again, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["violation"] == said["violation"]


def test_without_faults_there_are_none(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`none` is a world in which nothing goes wrong."""
    assert simulate.main([str(small), "--faults", "none"]) == 0
    assert "\nfaults: none\n" in capsys.readouterr().out


def test_days_end_the_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After them nothing new is proposed; what is in flight comes to its end."""
    path = tmp_path / "large.toml"
    path.write_text(CAMPAIGN.format(target="fake", n=500))
    assert simulate.main([str(path), "--days", "0.01", "--faults", "none"]) == 0
    n_candidates = int(capsys.readouterr().out.split(" candidates")[0].rsplit(" ")[-1])
    assert 0 < n_candidates < 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "5..4"], "--seeds is '5..4'"),
        (["--seeds", "x"], "--seeds is 'x'"),
        (["--days", "0"], "--days should be"),
        (["--jobs", "0"], "--jobs 1 or more"),
        (["--faults", "none.toml"], "no such file"),
    ],
)
def test_what_cannot_be_simulated_is_said(
    small: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with status 2."""
    assert simulate.main([str(small), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_key_of_the_rates_is_named(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the one that was meant."""
    rates = tmp_path / "rates.toml"
    rates.write_text("crahs = 0.5\n")
    assert simulate.main([str(small), "--faults", str(rates)]) == 2
    assert "unknown key 'crahs'; did you mean 'crash'?" in capsys.readouterr().err


def test_a_model_is_not_simulated(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its replies do not follow from a seed, and would be paid for."""
    with small.open("a") as file:
        file.write('[models.default]\nprovider = "command"\ncommand = ["true"]\n')
    assert simulate.main([str(small)]) == 2
    assert "the provider of 'models.default' is 'command'" in capsys.readouterr().err


def test_the_work_of_a_seed_goes_to_other_processes() -> None:
    """With --jobs each gets the campaign and the rates, and loads the target itself."""
    world = World(campaign(), Rates())
    assert pickle.loads(pickle.dumps(world.simulate)).__self__ == world


def test_it_is_a_subcommand() -> None:
    """And says so in the help of all."""
    assert "simulate" in command.COMMANDS


# ---- run -----------------------------------------------------------------------------------


def test_a_campaign_of_a_virtual_target_runs_in_virtual_time(small: Path, tmp_path: Path) -> None:
    """In this process, minutes in an instant."""
    run = tmp_path / "run"
    assert run_command.main([str(small), "--out", str(run), "--quiet"]) == 0

    records = list(read(run))
    assert replay(records).finished is not None
    assert records[-1].time_ns - records[0].time_ns > 600 * 10**9


def test_a_virtual_run_goes_on_at_its_own_time(tmp_path: Path) -> None:
    """A pause of years between two processes is none in its world."""
    run, target = tmp_path / "run", TimedTarget()
    with EventLog.open(run, ticking(10**18)) as log:
        settings = campaign(max_candidates=4)
        director(run, log, target).start(
            first_event(settings, target, Blobs(run), secret_seed=SECRET, versions={})
        )
    assert run_command.main([str(run), "--quiet"]) == 0

    times = [record.time_ns for record in read(run)]
    assert times == sorted(times)
    assert times[-1] - times[0] < 86_400 * 10**9
