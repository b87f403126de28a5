"""A writer for tests of crashes, which uses all of the record, and the look at a run after it."""

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from events.blobs import Blobs
from events.damage import survey
from events.disk import DISK, Disk
from events.errors import LogError
from events.log import Entry, EventLog, holds_log, read
from events.projections.state import replay
from events.vocabulary import LogRepaired, Sha
from scripts.records.prune import prune
from tests.support.child import Say
from tests.support.logs import clock, entry

SEGMENT_RECORDS = 9
PACK_BYTES = 8192
BATCHES_A_PRUNE = 10


def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal after a few batches, begin packs after a few blobs, and have spares in short files."""
    monkeypatch.setattr("events.segments.MAX_RECORDS", SEGMENT_RECORDS)
    monkeypatch.setattr("events.pack_writer.MAX_PACK_BYTES", PACK_BYTES)
    monkeypatch.setattr("events.disk.SPARE_STEP", 1024)
    monkeypatch.setattr("events.reading.LEAST_SPARE_BYTES", 2048)


def write_on(run: Path, say: Say, n_batches: int | None = None, disk: Disk = DISK) -> None:
    """Append batches, each with a blob, and say what is acknowledged; prune now and then.

    Args:
        run: the run folder.
        say: told number and blob of the first event of every batch, or why there are no more.
        n_batches: after which to stop; None for never.
        disk: the file operations to use.
    """
    try:
        with EventLog.open(run, clock, disk) as log:
            blobs = Blobs(run, disk)
            blobs.fence(log.check)
            log.append(_report(log))
            for k in range(n_batches) if n_batches else itertools.count():
                sha = blobs.put(np.random.default_rng((os.getpid(), k)).bytes(1 + k * 531 % 4000))
                (first, _) = log.append([_naming(sha), entry("x" * (k * 397 % 3000))])
                say(f"{first.seq} {sha}")
                if k % BATCHES_A_PRUNE == BATCHES_A_PRUNE - 1:
                    prune(run, log, ["torn_tail"])
    except LogError as e:
        say(f"stopped {e}")


def acknowledged(lines: Iterable[str]) -> dict[int, Sha]:
    """What a writer said was acknowledged."""
    said = (line.partition(" ") for line in lines)
    return {int(seq): sha for seq, _, sha in said if seq.isdigit()}


def check(run: Path, acknowledged: dict[int, Sha]) -> None:
    """A run is whole, has all that was acknowledged, and goes on: verify, open, append, replay."""
    if holds_log(run):
        assert_whole(run)
    with EventLog.open(run, clock) as log:
        (*_, last) = log.append([*_report(log), entry("on")])
    records = list(read(run))
    assert replay(records).seq == last.seq == len(records) - 1
    assert all(records[seq].event == _naming(sha).event for seq, sha in acknowledged.items())
    assert_whole(run)


def assert_whole(run: Path) -> None:
    """Nothing of a run is damaged."""
    damage = [str(place) for place in survey(run).damage]
    assert not damage, damage


def _naming(sha: Sha) -> Entry:
    """An event that names a blob, of the kind with the fewest fields."""
    return Entry(LogRepaired(offset=0, n_bytes=0, sha=sha), "director")


def _report(log: EventLog) -> list[Entry]:
    return [Entry(log.repaired, "director")] if log.repaired else []
