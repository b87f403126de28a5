"""Readers beside a busy writer see each record once, in order, and never half a record."""

import signal
import time
from functools import partial
from pathlib import Path

import pytest

from events.blobs import Blobs
from events.errors import BlobMissingError
from events.log import batches, holds_log, read
from events.segments import segments_of
from events.tail import Tail
from events.vocabulary import BlobsPruned, LogRepaired, Record
from tests.support.child import Child
from tests.support.writing import acknowledged, small_files, write_on


@pytest.mark.timeout(3600)
def test_a_tail_sees_each_record_once_and_in_order(
    folder: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the ends of segments and packs, and beside prunes; a whole read finds the same."""
    small_files(monkeypatch)
    run, blobs = folder / "run", Blobs(folder / "run")
    writer = Child(partial(write_on, run)).go()
    while not holds_log(run):
        time.sleep(0.001)
    tail, seen, n_blobs = Tail(run), list[Record](), 0
    deadline = time.monotonic() + pytestconfig.getoption("--seconds")
    while time.monotonic() < deadline:
        fresh = list(tail.fresh())
        n_blobs += sum(is_there(blobs, record) for record in fresh)
        seen += fresh
    writer.send(signal.SIGKILL)
    safe = acknowledged(writer.end())
    seen += tail.fresh()

    assert [record.seq for record in seen] == list(range(len(seen)))
    assert seen == list(read(run))
    assert all(seen[seq].event.sha == sha for seq, sha in safe.items())  # type: ignore[union-attr]
    assert len(segments_of(run)) > 10
    assert any(isinstance(record.event, BlobsPruned) for record in seen)
    assert n_blobs > len(safe) // 2


def is_there(blobs: Blobs, record: Record) -> bool:
    """Whether the blob of a new record is there, which only a prune can have removed."""
    if isinstance(record.event, LogRepaired):
        try:
            return bool(blobs.get(record.event.sha))
        except BlobMissingError:
            return False
    return False


def test_a_reader_of_the_whole_run_sees_only_whole_batches(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports and replays of a live run must not disturb it nor be misled."""
    small_files(monkeypatch)
    writer, lengths = Child(partial(write_on, folder)).go(), list[int]()
    writer.lines.readline()
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        lengths.append(sum(len(records) for _, records in batches(folder)))
    writer.send(signal.SIGKILL)
    writer.end()

    ends = {frame.end.seq for frame, _ in batches(folder)}
    assert ends.issuperset(lengths)
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3
