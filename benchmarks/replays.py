"""A long log read again: into all projections, for one candidate, and by the next writer.

Replays are compared in processor time, in rounds in which each store is read in turn; the ratios
are medians of the rounds' ratios. The library holds fewer events where the log is long, and its
times are taken per event. Reopening and evidence are in time on the wall.
"""

import subprocess
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
from pydantic import TypeAdapter

from benchmarks.histories import long_run, write
from benchmarks.stores import Eventsourcing, made
from benchmarks.table import Row, cpu_s, wall_s
from events import frames
from events.evidence import records_about
from events.log import Entry, EventLog, batches, read, read_head
from events.projections.state import State, replay
from events.reading import read_end
from events.segments import segment_path, segments_of
from events.vocabulary import Record, RunInterrupted

RECORD = TypeAdapter(Record)
ROUNDS = 3
LIBRARY_EVENTS = 50_000
"""That the library holds at most."""
AGGREGATE_EVENTS = 10_000
"""Of which it makes its aggregate."""
FOLDED = 100_000
"""Records in memory at once, to fold them alone."""
SAVED = 1000
"""Records a transaction while the library's database is filled; live runs would save one."""
ASKED = 20
"""Candidates whose evidence is looked for."""
REPLAY = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from events.log import read
    from events.projections.state import replay
    state = replay(read(Path(sys.argv[1])))
    status = Path("/proc/self/status").read_text()  # rusage counts the parent's memory as well
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
    """
)
WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from events.log import Entry, EventLog
    from events.vocabulary import RunInterrupted
    with EventLog.open(Path(sys.argv[1]), lambda: 0) as log:
        while True:
            log.append([Entry(RunInterrupted(reason="x" * 300), "director")])
            print("appended", flush=True)
    """
)


def replays(folder: Path, n: int) -> Iterator[Row]:
    """What can be asked of a log of ``n`` events."""
    run, states = made(folder / "log"), list[State]()
    write(run, long_run(n))
    library = _filled(made(folder / "library"), run)
    held = min(n, LIBRARY_EVENTS)
    ours: dict[str, Callable[[], object]] = {
        "head": lambda: read_head(run),
        "read": lambda: deque(read(run), 0),
        "replay": lambda: states.append(replay(read(run))),
        "validated": lambda: replay(r for _, records in batches(run) for r in records),
    }
    its: dict[str, tuple[Callable[[], object], int]] = {
        "notified": (lambda: deque(library.notified(), 0), held),
        "folded": (lambda: replay(map(RECORD.validate_python, library.notified())), held),
        "got": (lambda: library.get(min(held, AGGREGATE_EVENTS)), min(held, AGGREGATE_EVENTS)),
    }
    us: dict[str, list[float]] = {name: [] for name in (*ours, *its)}
    for _ in range(ROUNDS):
        states.clear()
        for name, work in ours.items():
            us[name].append(cpu_s(work) / n * 1e6)
        for name, (work, of) in its.items():
            us[name].append(cpu_s(work) / of * 1e6)
    library.close()
    yield from _table(run, n, us)
    yield Row("  the fold alone, us a record", f"{_fold_s(run) * 1e6:.2f}", "<= 1.5")
    digest_ms = cpu_s(states[0].digest) * 1e3
    n_candidates = len(states[0].tree.nodes)
    yield Row(f"  first digest, {n_candidates:,} candidates, ms", f"{digest_ms:.1f}")
    yield Row("  peak memory of a process that replays, MB", _told(REPLAY, run), "<= 500")
    states.clear()  # so that no collection of garbage goes through them
    yield from _evidence(run, n_candidates)
    yield from _reopening(run)


def _table(run: Path, n: int, us: dict[str, list[float]]) -> Iterator[Row]:
    size = sum(segment_path(run, first).stat().st_size for first in segments_of(run)) / 1e6

    def spent(name: str) -> str:
        return f"{median(us[name]) * n / 1e6:.2f}"

    def times(ours: str, its: str) -> str:
        return f"{median(b / a for a, b in zip(us[ours], us[its], strict=True)):.2f}"

    def per(name: str) -> str:
        return f"{median(us[name]):.1f} us an event"

    yield Row(f"{n:,} events, {size:.0f} MB: verified alone, CPU s", spent("head"))
    yield Row("  and decoded, CPU s", spent("read"))
    yield Row("  and folded into all projections, CPU s", spent("replay"))
    yield Row(f"    times its notification log alone ({per('notified')})",
              times("replay", "notified"), ">= 25")  # fmt: skip
    yield Row(f"    times that, validated and folded ({per('folded')})", times("replay", "folded"))
    yield Row(f"    times repository.get ({per('got')})", times("replay", "got"), ">= 60")
    yield Row("  the same with every field validated, CPU s", spent("validated"))
    yield Row("    times its notification log alone", times("validated", "notified"), ">= 12")
    yield Row("    times that, validated and folded", times("validated", "folded"))


def _filled(folder: Path, run: Path) -> Eventsourcing:
    library, records = Eventsourcing(folder), islice(read(run), LIBRARY_EVENTS)
    while saved := list(islice(records, SAVED)):
        library.append_records(saved)
    return library


def _fold_s(run: Path) -> float:
    """Processor seconds a record of the fold alone; the best of three, on records in memory."""
    records = list(islice(read(run), FOLDED))
    return min(cpu_s(lambda: replay(records)) for _ in range(3)) / len(records)


def _told(script: str, run: Path) -> str:
    """What a process of its own says of a run, as a whole number."""
    told = subprocess.run(
        [sys.executable, "-c", script, str(run)], stdout=subprocess.PIPE, check=True
    ).stdout
    return f"{float(told):.0f}"


def _evidence(run: Path, n_candidates: int) -> Iterator[Row]:
    """The records about candidates drawn at random, each looked for anew."""
    rng = np.random.default_rng(ASKED)
    asked = rng.integers(1, n_candidates, ASKED).tolist()
    ms = [wall_s(partial(records_about, run, candidate)) * 1e3 for candidate in asked]
    what = f"evidence of one candidate of {n_candidates:,}, ms"
    yield Row(f"{what}: median of {ASKED}", f"{median(ms):.1f}", "<= 50")
    yield Row("  the slowest", f"{max(ms):.1f}")


def _reopening(run: Path) -> Iterator[Row]:
    """A writer of the long log is killed in an append; the next one opens it and appends."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run)], stdout=subprocess.PIPE
    ) as child:
        if child.stdout is None or not child.stdout.readline():
            raise SystemExit("the writer did not start")
        time.sleep(0.1)
        child.kill()
    _tear(run)
    opened = wall_s(lambda: _append_repaired(run))
    what = "reopening it after kill -9, torn tail and all, to the first durable append, s"
    yield Row(what, f"{opened:.2f}", "<= 0.5")


def _tear(run: Path) -> None:
    """Put the first part of a batch behind the last whole one."""
    cursor, _ = read_end(run)
    with cursor.path.open("r+b") as file:
        file.seek(cursor.at.offset)
        file.write(frames.pack(cursor.at, b"x" * 300, 1, cursor.at.epoch)[0][:200])


def _append_repaired(run: Path) -> None:
    with EventLog.open(run, lambda: 0) as log:
        if log.repaired is None:
            raise SystemExit("the log had no torn tail")
        log.append([Entry(log.repaired, "director"), Entry(RunInterrupted(reason="x"), "director")])
