"""Another acceptance policy on the same pairs."""

from pathlib import Path

import pytest

from decisions.counterfactual import redecide
from events.campaign import Acceptance
from events.log import read
from scripts.main import main
from tests.support.runs import begin, campaign


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    begin(folder, campaign(max_candidates=16))
    return folder


def test_the_same_policy_decides_the_same(run: Path) -> None:
    """What was recorded is what the policy of the run says."""
    policy = campaign().acceptance

    for trial in redecide(read(run), policy):
        assert (trial.recorded, trial.n_recorded) == (trial.other, trial.n_other)


def test_a_stricter_policy_accepts_less(run: Path) -> None:
    """With one false accept in a million allowed, twelve pairs are not enough."""
    trials = redecide(read(run), Acceptance(alpha=1e-6))

    assert any(t.recorded == "accepted" for t in trials)
    assert all(t.other != "accepted" for t in trials)


def test_replay_names_the_accepts_that_change(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per accept that another policy would not have made."""
    policy = tmp_path / "strict.toml"
    policy.write_text("[acceptance]\nalpha = 1e-6\n")

    assert main(["replay", str(run), "--policy", str(policy)]) == 0
    said = capsys.readouterr().out
    assert "accepted after 12 pairs, would be undecided after 0" in said


def test_a_misspelt_policy_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same errors as in a campaign file."""
    policy = tmp_path / "strict.toml"
    policy.write_text("[acceptance]\nalhpa = 0.1\n")

    assert main(["replay", str(run), "--policy", str(policy)]) == 2
    assert "did you mean 'alpha'?" in capsys.readouterr().err
