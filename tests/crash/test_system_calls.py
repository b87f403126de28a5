"""System calls of a real writer fail, lie, or are its last ones: each of them in turn."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from events.damage import survey
from events.errors import LogError
from events.log import read
from tests.support import strace
from tests.support.writing import acknowledged, check, small_files, write_on

N_BATCHES = 12
"""They fill two segments and two packs, and a prune is among them."""
SYNCS = ("fdatasync", "fsync")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few batches do for all that a writer does."""
    small_files(monkeypatch)


def outcome(run: Path, *faults: str) -> tuple[list[str], list[str]]:
    """What a writer says under these faults, and the calls that it makes."""
    trace = run.with_suffix(".trace")
    said = strace.run(partial(write_on, run, n_batches=N_BATCHES), trace, faults)
    return said, strace.calls(trace)


def each(tmp_path: Path, names: Sequence[str]) -> Iterator[tuple[Path, str, int]]:
    """A run folder, a call and its number for each of these calls that a writer makes."""
    _, calls = outcome(tmp_path / "calm")
    for name in names:
        for n in range(1, 1 + sum(bool(re.match(name.strip("/^"), call)) for call in calls)):
            yield tmp_path / f"{name.strip('/^')} {n}", name, n


def injected(calls: Sequence[str]) -> int:
    """Where the first fault was."""
    return next(k for k, call in enumerate(calls) if call.endswith("(INJECTED)"))


@pytest.mark.timeout(600)
def test_a_writer_whose_sync_fails_writes_nothing_more(tmp_path: Path) -> None:
    """Whichever sync it is: the kernel may have dropped the bytes, and the next one may lie."""
    for run, name, n in each(tmp_path, SYNCS):
        said, calls = outcome(run, f"{name}:error=EIO:when={n}")
        assert "Input/output error" in said[-1]
        assert not any(call.startswith("pwrite64") for call in calls[injected(calls) :])
        check(run, acknowledged(said))


@pytest.mark.timeout(600)
def test_a_full_disk_at_any_write_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    """All but the mark is needed; that one only says more."""
    for run, name, n in each(tmp_path, ["pwrite64"]):
        said, calls = outcome(run, f"{name}:error=ENOSPC:when={n}")
        is_mark = "/acknowledged>" in calls[injected(calls)]
        assert is_mark or "No space left on device" in said[-1]
        check(run, acknowledged(said))


@pytest.mark.timeout(600)
def test_a_writer_killed_at_any_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Also between the steps of sealing, of the next segment, of a new pack, and of a prune."""
    for run, name, n in each(tmp_path, strace.CALLS):
        said, _ = outcome(run, f"{name}:signal=KILL:when={n}")
        assert len(acknowledged(said)) < N_BATCHES or name == "ftruncate"
        check(run, acknowledged(said))


def test_interrupted_calls_are_made_again(tmp_path: Path) -> None:
    """A signal, such as that of a resized window, is no failure of the disk."""
    faults = [f"{name}:error=EINTR:when=1+2" for name in ("pwrite64", *SYNCS, "ftruncate")]
    said, _ = outcome(tmp_path / "run", *faults)
    assert len(acknowledged(said)) == N_BATCHES
    check(tmp_path / "run", acknowledged(said))


@pytest.mark.parametrize("n", range(5, 58, 4))
def test_syncs_that_do_nothing_cost_a_killed_writer_nothing(tmp_path: Path, n: int) -> None:
    """The kernel still has the bytes, so this shows only that no reader needs the syncs.

    What such a disk loses in a power cut is shown by the enumerated states.
    """
    lies = [f"{name}:retval=0" for name in SYNCS]
    said, _ = outcome(tmp_path / "run", *lies, f"pwrite64:signal=KILL:when={n}")
    check(tmp_path / "run", acknowledged(said))


@pytest.mark.timeout(600)
def test_a_write_that_is_confirmed_and_not_done_is_found_out(tmp_path: Path) -> None:
    """Ten bytes of any write are missing from the disk: then it is harmless, or it is named."""
    n_found = 0
    for run, name, n in each(tmp_path, ["pwrite64"]):
        said, _ = outcome(run, f"{name}:retval=10:when={n}")
        known = acknowledged(said)
        if is_whole(run):
            check(run, known)
        else:
            n_found += 1

    assert n_found > N_BATCHES


def is_whole(run: Path) -> bool:
    """Whether nobody finds anything wrong with a run."""
    try:
        return not survey(run).damage and bool(list(read(run)))
    except LogError:
        return False
