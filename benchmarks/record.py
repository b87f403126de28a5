"""The record side by side with other stores in one run: `python -m benchmarks.record`.

Needs the extra ``bench``. Ratios of appends come from rounds in which each store does the same
work in turn, and are the medians of the rounds' ratios; on a busy machine they compare the waits
for a processor, unless it runs at real-time priority (``chrt -f 1``, the part ``append`` alone).
Replays are compared in processor time, reopening and evidence in time on the wall.
"""

import argparse
import os
import resource
import subprocess
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from benchmarks.histories import long_run, write
from benchmarks.stores import Eventsourcing, Kernelwright, Raw, Sqlite, Store, texts
from events.blobs import Blobs
from events.log import Entry, EventLog, batches, read, read_head
from events.projections.state import State, replay
from events.segments import segment_path, segments_of
from events.vocabulary import CandidateAccepted, Record, RunInterrupted
from tests.support.runs import begin, campaign

RECORD = TypeAdapter(Record)
STORES: dict[str, Callable[[Path], Store]] = {
    "log": Kernelwright,
    "eventsourcing": Eventsourcing,
    "sqlite": Sqlite,
    "raw": Raw,
}
GROUPS = {1: 100, 10: 20, 100: 6}
"""Events an append: appends a round."""
TARGETS = {
    (1, "eventsourcing"): ">= 2.5",
    (1, "raw"): ">= 0.8",
    (100, "eventsourcing"): ">= 4.5",
}
WARM_UP = 40
"""Groups of 100 small events that every store holds before it is measured."""
MOST_AT_ONCE = 100_000
"""Records in memory at once, to fold them alone."""
SAVED = 1000
"""Records a transaction while the library's database is filled; live runs would save one."""
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


class Row(NamedTuple):
    """A line of the table."""

    what: str
    reached: str
    target: str = ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="length of the replayed log")
    parser.add_argument("--rounds", type=int, default=9, help="of appends")
    parser.add_argument("--folder", type=Path, help="where to write; not in memory")
    parser.add_argument("--pace", type=float, default=10.0, help="seconds a candidate, live run")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    print(f"{'measured':<64}{'reached':>24}  target")
    with TemporaryDirectory(dir=args.folder) as name:
        for part in args.parts:
            for row in PARTS[part](Path(name) / part, args):
                print(f"{row.what:<64}{row.reached:>24}  {row.target}", flush=True)
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")


# ---- append --------------------------------------------------------------------------------


def appends(folder: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Durable appends of one, ten and a hundred events."""
    yield from _appends(folder / "mixed", args.rounds, largest=3)
    yield from _appends(folder / "small", args.rounds, largest=1)


def _appends(folder: Path, rounds: int, largest: int) -> Iterator[Row]:
    what = "all sizes, large ones as blobs" if largest == 3 else "small events only"
    for group, n in GROUPS.items():
        rates = _rates(folder / str(group), group, n, rounds, largest)
        yield Row(f"append {group} a sync, {what}: events/s", f"{median(rates['log']):,.0f}")
        for name in ("eventsourcing", "sqlite", "raw"):
            ratio = median(ours / its for ours, its in zip(rates["log"], rates[name], strict=True))
            target = TARGETS.get((group, name), "")
            yield Row(f"  times {name} ({median(rates[name]):,.0f}/s)", f"{ratio:.2f}", target)


def _rates(folder: Path, group: int, n: int, rounds: int, largest: int) -> dict[str, list[float]]:
    """Events per second of every store in every round."""
    rng = np.random.default_rng(group)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        stores = {name: make(_made(folder / name)) for name, make in STORES.items()}
        for store in stores.values():
            stack.callback(store.close)
        for _, store in product(range(WARM_UP), stores.values()):
            store.append(texts(rng, 100, largest=1))
        found: dict[str, list[float]] = {name: [] for name in stores}
        for _ in range(rounds):
            for name, store in stores.items():
                groups = [texts(rng, group, largest) for _ in range(n)]
                start = time.perf_counter()
                deque(map(store.append, groups), 0)
                found[name].append(group * n / (time.perf_counter() - start))
    return found


# ---- replay --------------------------------------------------------------------------------


def replays(folder: Path, args: argparse.Namespace) -> Iterator[Row]:
    """From the disk into all projections, everything verified, and what the library needs."""
    run, n = _made(folder / "log"), args.events
    write(run, long_run(n))
    states: list[State] = []
    heads = _cpu_s(lambda: read_head(run))
    reads = _cpu_s(lambda: deque(read(run), 0))
    whole = _cpu_s(lambda: states.append(replay(read(run))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fold_s = _fold_s(run)
    library = Eventsourcing(_made(folder / "library"))
    records = read(run)
    while saved := list(islice(records, SAVED)):
        library.append_records(saved)
    notified = _cpu_s(lambda: deque(library.notified(), 0))
    folded = _cpu_s(lambda: states.append(replay(map(RECORD.validate_python, library.notified()))))
    got = _cpu_s(library.get)
    library.close()
    hashed = _cpu_s(states[0].digest)
    if states[0].digest() != states[1].digest():
        raise SystemExit("the two stores replay to different states: no comparison")
    size = sum(segment_path(run, n).stat().st_size for n in segments_of(run)) / 1e6
    yield Row(f"{n:,} events, {size:.0f} MB: checksums and chain only, CPU s", f"{heads:.2f}")
    yield Row("  and decoded, every field validated, CPU s", f"{reads:.2f}")
    yield Row("  and folded into all projections, CPU s", f"{whole:.2f}")
    yield Row("  the fold alone, us a record", f"{fold_s * 1e6:.2f}", "<= 1.5")
    n_candidates = len(states[0].tree.nodes)
    yield Row(f"  first digest, {n_candidates:,} candidates, ms", f"{hashed * 1e3:.1f}")
    yield Row(
        f"  times its notification log, read ({notified:.2f} s)", f"{notified / reads:.2f}", ""
    )
    yield Row(
        f"  times that, validated and folded ({folded:.2f} s)", f"{folded / whole:.2f}", ">= 12"
    )
    yield Row(f"  times repository.get ({got:.2f} s)", f"{got / whole:.2f}", ">= 60")
    yield Row("  peak memory of our replay, MB", f"{peak:.0f}", "<= 500")
    yield from _evidence(run)
    yield from _reopening(run)


def _fold_s(run: Path) -> float:
    """Processor seconds a record of the fold alone; the best of three, on records in memory."""
    records = list(islice(read(run), MOST_AT_ONCE))
    return min(_cpu_s(lambda: replay(records)) for _ in range(3)) / len(records)


def _evidence(run: Path) -> Iterator[Row]:
    """The records that one candidate's verdict rests on; nothing but the log itself finds them."""
    accepts = (r for r in read(run) if isinstance(r.event, CandidateAccepted))
    wanted = set(next(accepts).because)
    found = _wall_s(lambda: [record for record in read(run) if record.seq in wanted])
    yield Row("evidence of one candidate, ms", f"{found * 1e3:,.0f}", "<= 50")


def _reopening(run: Path) -> Iterator[Row]:
    """A writer of the long log is killed; the next one opens it and appends."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run)], stdout=subprocess.PIPE
    ) as child:
        if child.stdout is None or not child.stdout.readline():
            raise SystemExit("the writer did not start")
        child.kill()
    opened = _wall_s(lambda: _append_one(run))
    yield Row(
        "reopening it after kill -9 to the first durable append, s", f"{opened:.2f}", "<= 0.5"
    )


def _append_one(run: Path) -> None:
    with EventLog.open(run, lambda: 0) as log:
        log.append([Entry(RunInterrupted(reason="x"), "director")])


# ---- a live run ----------------------------------------------------------------------------


def share(folder: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Processor time of the record in a run, by doing again what a finished run did."""
    finished, again = _made(folder / "run"), _made(folder / "again")
    begin(finished, campaign(max_candidates=100))
    groups, blobs, state = [records for _, records in batches(finished)], Blobs(finished), State()
    contents = [blobs.get(sha) for sha in blobs.names()]
    copies, start = Blobs(again), time.thread_time()
    with EventLog.open(again, lambda: 0) as log:
        for content in contents:
            copies.put(content)
        for records in groups:
            log.append([Entry(r.event, r.actor, r.because) for r in records])
            deque(map(state.apply, records), 0)
    used = (time.thread_time() - start) / len(state.tree.nodes)
    pace = args.pace
    what = f"share of a core, {pace:g} s a candidate ({used * 1e3:.1f} ms of the record each)"
    yield Row(what, f"{used / pace:.2%}", "< 2 %")


def _wall_s(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


PARTS = {"replay": replays, "append": appends, "share": share}

if __name__ == "__main__":
    main()
