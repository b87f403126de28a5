"""Runs that were recorded once are read for ever."""

import json
from pathlib import Path

import pytest

from decisions.audit import audit
from events.blobs import Blobs
from events.codec import SCHEMA
from events.damage import survey
from events.errors import LogError
from events.log import read
from tests.support.record_run import EXPECTED, RUN, record, told

FOLDERS = sorted((Path(__file__).parents[1] / "data").glob("format-*"))
ADVICE = (
    "the vocabulary has changed: append an upcaster for every kind concerned to events.upcasters, "
    "which gives it a new version, then record a run with tests.support.record_run; replace the "
    "newest one only if no release has written it"
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recorded_run_is_read_as_on_its_day(folder: Path) -> None:
    """A log of any released version replays to the same state, and nothing is wrong with it."""
    run = folder / RUN
    expected = json.loads((folder / EXPECTED).read_text())
    del expected["schema"]

    assert told(run) == expected
    assert survey(run).damage == []
    assert list(audit(read(run), Blobs(run).get, LogError)) == []


def test_a_changed_vocabulary_gets_new_versions() -> None:
    """Without one, a reader could not tell the old fields from the new."""
    assert json.loads((FOLDERS[-1] / EXPECTED).read_text())["schema"] == SCHEMA.hex(), ADVICE


def test_a_recording_differs_from_the_last_one_in_its_head_only(tmp_path: Path) -> None:
    """Whoever records again sees what a change did; only the number of the log is drawn by lot."""
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        record(folder)
    one, other = (json.loads((folder / EXPECTED).read_text()) for folder in (first, second))

    assert one.pop("head") != other.pop("head")
    assert one == other
