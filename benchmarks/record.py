"""The record side by side with other stores in one run: `python -m benchmarks.record`.

Needs the extra ``bench``. How each part measures is written in its module.
"""

import argparse
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.appends import appends
from benchmarks.replays import replays
from benchmarks.stores import made
from benchmarks.table import Row
from events.blobs import Blobs
from events.log import Entry, EventLog, batches
from events.projections.state import State
from tests.support.runs import begin, campaign

Part = Callable[[Path, argparse.Namespace], Iterator[Row]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="length of the replayed log")
    parser.add_argument("--rounds", type=int, default=9, help="of appends")
    parser.add_argument("--folder", type=Path, help="where to write; not in memory")
    parser.add_argument("--pace", type=float, default=10.0, help="seconds a candidate, live run")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    print(f"cores: {os.cpu_count()}, load before: {os.getloadavg()[0]:.1f}")
    print(Row("measured", "reached", "target"))
    start = time.perf_counter()
    with TemporaryDirectory(dir=args.folder) as name:
        for part in args.parts:
            for row in PARTS[part](made(Path(name) / part), args):
                print(row, flush=True)
    took = time.perf_counter() - start
    print(f"load after: {os.getloadavg()[0]:.1f}; it took {took:.0f} s")


def share(folder: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Processor time of the record in a run, by doing again what a finished run did."""
    finished, again = made(folder / "run"), made(folder / "again")
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


PARTS: dict[str, Part] = {
    "append": lambda folder, args: appends(folder, args.rounds),
    "replay": lambda folder, args: replays(folder, args.events),
    "share": share,
}

if __name__ == "__main__":
    main()
