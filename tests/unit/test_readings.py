"""Whoever shows a time says what it is a time of, where the device is a simulated one."""

from pathlib import Path

import pytest

from events.blobs import Blobs
from scripts import audit, tree
from scripts.progress import usage
from scripts.reporting import page
from scripts.reporting.handover import exported
from scripts.reporting.history import load
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign

DEVICE = "simulated device: a static cost + noise profile"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose fingerprint names what stood for the device."""
    plain = FakeTarget.fingerprint
    monkeypatch.setattr(FakeTarget, "fingerprint", lambda self: {**plain(self), "device": DEVICE})
    begin(tmp_path, campaign(max_candidates=2))
    return tmp_path


def test_every_page_and_table_names_the_simulated_device(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report, export, tree, audit, and the line of a run that goes on."""
    run = load(folder)

    assert DEVICE in page.render(run, Blobs(folder))
    assert DEVICE in exported(run, Blobs(folder))["README.md"].decode()
    assert DEVICE in usage(run.state)
    tree.main([str(folder)])
    assert DEVICE in capsys.readouterr().out
    audit.main([str(folder)])
    assert DEVICE in capsys.readouterr().out


def test_a_real_devices_pages_say_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to warn of."""
    begin(tmp_path, campaign(max_candidates=1))
    run = load(tmp_path)

    assert "Readings" not in page.render(run, Blobs(tmp_path))
    tree.main([str(tmp_path)])
    assert "readings:" not in capsys.readouterr().out
