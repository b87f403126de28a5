"""`kernelwright run` in one process: start, stop, go on, refuse, and what is said about it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from events.log import EventLog, read
from events.projections.state import replay
from events.segments import segment_path
from scripts import report
from scripts.run import main
from targets.protocol import Sources
from tests.support.fake_target import BASE, FakeTarget

CAMPAIGN = """
name = "fake"
target = "fake"
kernels = ["alpha", "beta"]

[search]
max_candidates = 10

[acceptance]
noise_pairs = 6
final_pairs = 6
"""


@pytest.fixture(autouse=True)
def campaign_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign of the fake target, which is installed as a plug-in would be."""
    about = tmp_path / "plugin" / "fake_plugin-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fake_plugin\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[kernelwright.targets]\nfake = fake_plugin:make\n", encoding="ascii"
    )
    (about.parent / "fake_plugin.py").write_text(
        "from tests.support.fake_target import FakeTarget\n\n"
        "def make(preset):\n    return FakeTarget()\n"
    )
    monkeypatch.syspath_prepend(about.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # for the lease
    path = tmp_path / "fake.toml"
    path.write_text(CAMPAIGN)
    return path


def kinds(run: Path) -> list[str]:
    """Kinds of a run's events, in order."""
    return [record.event.kind for record in read(run)]


def interrupt_at(job: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the operator press Ctrl-C during a device job."""
    measure, count = FakeTarget.measure, [0]

    def interrupted(self: FakeTarget, *args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        if count[0] == job:
            os.kill(os.getpid(), signal.SIGINT)
        return measure(self, *args, **kwargs)

    monkeypatch.setattr(FakeTarget, "measure", interrupted)


def test_a_run_ends_with_its_figures(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The last lines are what people copy: figures, folder, and how to check them."""
    assert main([str(campaign_file), "--local"]) == 0
    out = capfd.readouterr().out

    assert "alpha  speed-up " in out
    assert "geomean " in out
    assert "run folder: runs/fake-1" in out
    assert "audit: kernelwright audit runs/fake-1" in out
    assert kinds(Path("runs/fake-1"))[-1] == "run_finished"


def test_a_second_start_gets_a_folder_of_its_own(campaign_file: Path) -> None:
    """Only --out, or a run folder, goes on with a run."""
    assert main([str(campaign_file), "--local", "--quiet"]) == 0
    assert main([str(campaign_file), "--local", "--quiet"]) == 0

    assert sorted(p.name for p in Path("runs").iterdir()) == ["fake-1", "fake-2"]


def test_a_finished_run_is_shown_again_and_not_touched(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Running it once more is a way to ask how it ended."""
    assert main([str(campaign_file), "--local", "--out", "r"]) == 0
    before = segment_path(Path("r"), 0).read_bytes()
    first = capfd.readouterr().out

    assert main(["r"]) == 0

    again = capfd.readouterr().out
    assert first.endswith(again)
    assert segment_path(Path("r"), 0).read_bytes() == before


def test_an_interrupt_stops_at_a_safe_point_and_the_run_goes_on_later(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The job that was running is on record: nothing that was paid for is lost."""
    interrupt_at(9, monkeypatch)

    assert main([str(campaign_file), "--local", "--out", "r"]) == 130
    said = capfd.readouterr()
    assert "stopped; go on with: kernelwright run r --local" in said.out
    assert "stopping at the next safe point" in said.err
    assert kinds(Path("r"))[-1] == "run_interrupted"
    assert replay(read(Path("r"))).ledger.jobs == 9
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    assert report.main(["r"]) == 0
    assert "run_resumed" not in kinds(Path("r"))

    assert main(["r", "--local"]) == 0
    assert "run_resumed" in kinds(Path("r"))
    assert "no final pairs yet" not in Path("r/report.html").read_text()
    assert replay(read(Path("r"))).finished is not None


def test_out_with_the_same_campaign_goes_on(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job script can repeat one command until it exits with 0."""
    interrupt_at(5, monkeypatch)
    command = [str(campaign_file), "--local", "--quiet", "--out", "r"]

    assert [main(command), main(command)] == [130, 0]


def test_out_with_another_campaign_is_refused(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The configuration is the first event: it cannot change on the way."""
    assert main([str(campaign_file), "--local", "--quiet", "--out", "r"]) == 0
    campaign_file.write_text(CAMPAIGN.replace("final_pairs = 6", "final_pairs = 9"))

    assert main([str(campaign_file), "--local", "--out", "r"]) == 2
    assert "'acceptance.final_pairs' is 6 there and 9 in" in capfd.readouterr().err


def test_a_run_that_somebody_else_runs_is_refused(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two writers of one log would be the end of it."""
    with EventLog.open(Path("r"), time.time_ns):
        assert main([str(campaign_file), "--local", "--out", "r"]) == 2

    assert f"refused: r is being run by process {os.getpid()}" in capfd.readouterr().err


def test_a_torn_end_is_reported_and_the_run_goes_on(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A crash in the middle of an append leaves half a record."""
    interrupt_at(5, monkeypatch)
    assert main([str(campaign_file), "--local", "--quiet", "--out", "r"]) == 130
    with segment_path(Path("r"), 0).open("ab") as file:
        file.write(b"half a record")

    assert main(["r", "--local"]) == 0
    story = kinds(Path("r"))
    assert story[story.index("log_repaired") :][:2] == ["log_repaired", "run_resumed"]


def test_a_failed_control_ends_the_run_with_a_status_of_its_own(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A wrong kernel that passes means that no figure of this run can be trusted."""
    good = Sources(BASE, BASE + "knob 1\n", "time 3.0\n", {"one": "time 0.2\n"})
    monkeypatch.setattr(FakeTarget, "sources", lambda self, kernel: good)

    assert main([str(campaign_file), "--local"]) == 3
    assert "no speed-up is claimed" in capfd.readouterr().out


def test_json_is_alone_on_stdout(campaign_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A program reads one event per line; the secret seed is not among them."""
    assert main([str(campaign_file), "--local", "--json", "--out", "r"]) == 0
    said = capfd.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]

    assert events[-1]["event"]["kind"] == "run_finished"
    assert "secret_seed" not in said.out
    assert "run folder: r" in said.err


def test_an_unknown_target_starts_nothing(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No folder is left behind by a mistake."""
    campaign_file.write_text(CAMPAIGN.replace('target = "fake"', 'target = "fkae"'))

    assert main([str(campaign_file), "--local"]) == 2
    assert "did you mean 'fake'?" in capfd.readouterr().err
    assert not Path("runs").exists()


def test_a_cluster_that_nobody_answers_for_is_refused_at_once(
    campaign_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ray would try for minutes; and the run can be started in the same folder afterwards."""
    assert main([str(campaign_file), "--out", "r", "--ray-address", "127.0.0.1:1"]) == 2
    assert "no Ray cluster at '127.0.0.1:1'" in capfd.readouterr().err

    assert main([str(campaign_file), "--out", "r", "--local", "--quiet"]) == 0


def test_a_second_interrupt_kills_at_once() -> None:
    """An operator in a hurry is not made to wait for a device job."""
    code = (
        "import time; from scripts.run import Stop\n"
        "with Stop():\n    print(flush=True); time.sleep(60); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        assert b"once more" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)

    assert process.returncode == -signal.SIGINT
