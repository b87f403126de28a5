"""No bytes in a run folder make anybody who opens or reads it fail otherwise than by name.

One file of a run is spoiled in up to three ways at once, in every second case with checksums and
hashes that fit again; or a file has the bytes of another, or of one of another run, or is longer
than any disk.
"""

import os
import resource
import signal
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

import numpy as np
import pytest

from events.blobs import Blobs
from events.damage import survey
from events.errors import LogError
from events.log import EventLog, batches, read, read_head
from events.pruned import KnownBlobs
from tests.support.child import Child, Say
from tests.support.crash_disk import QUICK
from tests.support.logs import clock, entry
from tests.support.mutations import MUTATIONS, mended
from tests.support.writing import small_files, write_on

N_CASES = 4_000
N_PROCESSES = 2
MAX_BYTES = 1 << 30
"""Of address space, above what the process has anyway: two of the largest files that are read."""
MAX_CASE_S = 10.0

Files = dict[Path, bytes]


def open_and_append(run: Path) -> None:
    with EventLog.open(run, clock, QUICK) as log:
        log.append([entry("on")])


def read_blobs(run: Path) -> None:
    blobs = Blobs(run, QUICK)
    for sha in list(blobs.names()):
        try:
            blobs.get(sha)
        except LogError:
            continue
    deque(blobs.flaws(), maxlen=0)
    blobs.put(b"new")


def read_known_blobs(run: Path) -> None:
    KnownBlobs.of(run, read(run))


LOOKS: tuple[Callable[[Path], object], ...] = (
    lambda run: deque(read(run), maxlen=0),
    lambda run: deque(batches(run), maxlen=0),
    read_head,
    survey,
    read_known_blobs,
    read_blobs,
    open_and_append,
    open_and_append,
    read_head,
)


def files_of(run: Path) -> Files:
    return {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def lay(run: Path, files: Files) -> None:
    """Make a run folder what it was."""
    for path in run.rglob("*"):
        if path.is_file() and path not in files:
            path.unlink()
    for path, data in files.items():
        path.write_bytes(data)


def spoil(files: Files, foreign: Files, rng: np.random.Generator) -> str:
    """Spoil one file; say how."""
    paths = list(files)
    path = paths[rng.integers(len(paths))]
    data, done = files[path], []
    match int(rng.integers(200)):
        case 0:
            os.truncate(path, len(data) + (1 << int(rng.integers(2, 42))))
            done.append("grown")
        case 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8:
            others = [*files.values(), *foreign.values()]
            data = others[rng.integers(len(others))]
            done.append("replaced")
            path.write_bytes(data)
        case _:
            for _ in range(int(rng.integers(1, 4))):
                mutation = MUTATIONS[rng.integers(len(MUTATIONS))]
                data = mutation(data, rng)
                done.append(mutation.__name__)
            if rng.random() < 0.5:
                data = mended(path.name, data)
                done.append("mended")
            path.write_bytes(data)
    return f"{path.name} {' '.join(done)}"


def fuzz(run: Path, foreign: Files, seed: int, say: Say) -> None:
    """Look at spoiled runs, and say which look ended otherwise than well or by name."""
    limit_memory()
    signal.signal(signal.SIGALRM, too_slow)
    files, rng = files_of(run), np.random.default_rng(seed)
    for k in range(N_CASES // N_PROCESSES):
        lay(run, files)
        how = spoil(files, foreign, rng)
        for n, look in enumerate(LOOKS):
            signal.setitimer(signal.ITIMER_REAL, MAX_CASE_S)
            try:
                look(run)
            except LogError:
                pass
            except Exception as e:  # noqa: BLE001  any other error is what is looked for
                say(f"seed {seed}, case {k}, {how}, look {n}: {e!r}")
            signal.setitimer(signal.ITIMER_REAL, 0)
    say("done")


def limit_memory() -> None:
    n_pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = n_pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def too_slow(number: int, frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"not done after {MAX_CASE_S} s")


@pytest.mark.timeout(300)
def test_no_bytes_crash_hang_or_swell_who_opens_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged copy must be named as such by whatever is used on it, and by nothing worse."""
    small_files(monkeypatch)
    write_on(folder / "foreign", print, n_batches=4)
    foreign, fuzzers = files_of(folder / "foreign"), []
    for seed in range(N_PROCESSES):
        run = folder / f"run {seed}"
        write_on(run, print, n_batches=12)
        fuzzers.append(Child(partial(fuzz, run, foreign, seed)).go())
    assert [fuzzer.end() for fuzzer in fuzzers] == [["done"]] * N_PROCESSES
