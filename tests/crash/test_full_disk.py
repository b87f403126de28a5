"""A disk that is really full stops the run with the reason, and loses nothing acknowledged."""

import itertools
import resource
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from events import segments
from events.blobs import Blobs
from events.errors import LogWriteError
from events.log import Entry, EventLog, read
from events.vocabulary import RunInterrupted
from tests.support.child import Child, Say
from tests.support.writing import acknowledged, check, small_files, write_on

N_BATCHES = 12


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as e:
        pytest.skip(f"no small disk can be made here: {e}")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(run: Path, n_bytes: int) -> list[str]:
    """Append until the disk is full; return the blobs of what was acknowledged."""
    safe: list[str] = []
    with pytest.raises(LogWriteError, match="No space left"):
        append_on_and_on(run, n_bytes, safe)
    return safe


def append_on_and_on(run: Path, n_bytes: int, safe: list[str]) -> None:
    """Append one blob and one event that names it, again and again, and note them in ``safe``."""
    blobs = Blobs(run)
    with EventLog.open(run, lambda: 0) as log:
        if log.repaired:
            log.append([Entry(log.repaired, "director")])
        for k in itertools.count():
            sha = blobs.put(f"{n_bytes} {k}".encode())
            log.append([Entry(RunInterrupted(reason=sha * (n_bytes // 64)), "director")])
            safe.append(sha)


@pytest.mark.parametrize("n_bytes", [640, 6_400, 64_000])
@pytest.mark.parametrize("max_records", [1, 5, 1_000])
def test_a_full_disk_stops_the_run_and_loses_nothing(
    small_disk: Path, n_bytes: int, max_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once there is space again the run goes on where it was."""
    monkeypatch.setattr(segments, "MAX_RECORDS", max_records)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1 << 18))
    run = small_disk / "run"
    safe = fill(run, n_bytes)
    assert texts(run) == safe

    ballast.unlink()
    safe += fill(run, n_bytes + 64)
    assert texts(run) == safe
    assert all(Blobs(run).get(sha) for sha in safe)


def texts(run: Path) -> list[str]:
    return [r.event.reason[:64] for r in read(run) if isinstance(r.event, RunInterrupted)]


@pytest.mark.parametrize("n_free", [*range(3_000, 90_000, 7_900)])
def test_a_disk_that_fills_up_anywhere_stops_the_run_and_loses_nothing(
    small_disk: Path, n_free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a segment is sealed, a pack is begun, or blobs are pruned to make room."""
    small_files(monkeypatch)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes((1 << 20) - n_free))
    said = Child(partial(write_on, small_disk / "run")).go().end()
    assert "No space left" in said[-1]

    ballast.unlink()
    check(small_disk / "run", acknowledged(said))


@pytest.mark.parametrize("max_bytes", range(100, 9_800, 163))
def test_a_file_that_may_not_grow_stops_the_run_and_loses_nothing(
    tmp_path: Path, max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system takes the part of a write that fits, and refuses the rest when it is tried."""
    small_files(monkeypatch)
    said = Child(partial(write_limited, tmp_path / "run", max_bytes)).go().end()
    assert len(acknowledged(said)) == N_BATCHES or "File too large" in said[-1]
    check(tmp_path / "run", acknowledged(said))


def write_limited(run: Path, max_bytes: int, say: Say) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
    write_on(run, say, n_batches=N_BATCHES)
