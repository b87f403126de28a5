"""The commands of the operator: what they leave, what they say, what they refuse."""

from pathlib import Path

import pytest

from actors.inbox import Inbox
from events.lock import is_held
from events.log import LOCK_NAME, EventLog, read
from events.vocabulary import BudgetChanged, LimitChange, RunInterrupted
from scripts import ordering
from scripts.main import main
from tests.support.operated import name
from tests.support.runs import begin, campaign, ticking


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was stopped soon after its start."""
    monkeypatch.setattr(ordering, "WAIT_S", 0.1)
    stop = RunInterrupted(reason="enough", order=name(1))
    begin(tmp_path, campaign(), orders=lambda: [stop])
    return tmp_path


def orders(run: Path) -> list[object]:
    return list(Inbox(run)())


def test_an_order_waits_for_a_run_that_nobody_drives(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says so: the operator might look for an effect."""
    assert main(["pause", str(run)]) == 0
    said = capsys.readouterr().out
    assert said == "queued: the run is not running; it takes effect when it goes on\n"
    assert len(orders(run)) == 1


def test_an_order_waits_for_a_run_that_is_busy(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With everything in one process a safe point may be minutes away."""
    with EventLog.open(run, ticking()):
        assert main(["stop", str(run)]) == 0
    said = capsys.readouterr().out
    assert said == "queued: the run is at work; it takes effect at the next safe point\n"


def test_changes_of_limits_are_in_the_units_of_the_record(run: Path) -> None:
    """Hours are for people, and a sign makes a number relative."""
    words = ["--device-hours", "2", "--wall-hours", "0.5", "--tokens", "7", "--cost-usd", "1.5"]
    assert main(["budget", str(run), *words]) == 0
    (order,) = orders(run)
    assert isinstance(order, BudgetChanged)
    assert order.changes == (
        LimitChange(resource="wall_s", amount=1800.0, is_relative=False),
        LimitChange(resource="device_s", amount=7200.0, is_relative=False),
        LimitChange(resource="tokens", amount=7.0, is_relative=False),
        LimitChange(resource="cost_usd", amount=1.5, is_relative=False),
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resume"], "the run is not paused"),
        (["stop"], "is not running, so there is nothing to stop"),
        (["budget"], "name a limit: --wall-hours, --device-hours"),
        (["budget", "--tokens", "+1"], "tokens has no limit to change by +1; give it one first"),
        (["budget", "--device-hours=-1"], "device_s has no limit to change by -3600"),
        (["budget", "--tokens", "many"], "'many' is no number such as 3, +3 or -0.5"),
        (["budget", "--tokens", "inf"], "'inf' is no number"),
        (["veto", "c99", "--why", "x"], "there is no c99; the last candidate is c"),
        (["veto", "best", "--why", "x"], "'best' is no candidate; name one such as c42"),
        (["hint", "alpha", "x" * 401], "at most 400 characters; it has 401"),
        (["hint", "alpha", "  "], "at least 1 character; it has 0"),
    ],
)
def test_what_cannot_be_ordered_leaves_nothing(
    run: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says why, and status 2."""
    try:
        status = main([words[0], str(run), *words[1:]])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err
    assert not (run / "inbox").exists()


def test_an_order_that_the_run_refuses_is_not_called_delivered(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run may have moved on between the look of the command and that of the director."""
    monkeypatch.setattr(ordering, "leave", lambda path, order: None)
    assert main(["pause", str(run)]) == 2
    assert "the run has refused it" in capsys.readouterr().err


def test_asking_for_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """The next writer finds it free."""
    assert not is_held(tmp_path / LOCK_NAME)
    with EventLog.open(tmp_path, ticking()):
        assert is_held(tmp_path / LOCK_NAME)
    assert not is_held(tmp_path / LOCK_NAME)
    with EventLog.open(tmp_path, ticking()):
        assert list(read(tmp_path)) == []
