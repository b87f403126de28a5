"""``kernelwright log prune``: blobs of some kinds are given up, and the log says which.

The event is durable before the first pack is written anew, so that a prune that is killed is
finished by the next one, and what is missing afterwards is known to have been given up.
"""

import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from decisions.address import OPERATOR
from events.blob_names import named_by
from events.blobs import Blobs
from events.errors import LogMissingError
from events.log import Entry, EventLog, holds_log, read
from events.pruned import listed, pruned
from events.vocabulary import BlobKind, BlobsPruned, Record, RunFinished, Sha
from scripts.runs import UsageError

ONLY_WHEN_FINISHED: frozenset[BlobKind] = frozenset({"source", "artifact", "profile"})
"""Kinds that a run needs to go on."""


def main(args: Namespace) -> int:
    """Prune, as the one writer of the run; a second writer is refused."""
    if not holds_log(args.run):
        raise LogMissingError(args.run)
    with EventLog.open(args.run, time.time_ns) as log:
        if log.repaired:
            log.append([Entry(log.repaired, OPERATOR)])
        n_blobs, n_bytes = prune(args.run, log, args.blobs)
        print(f"{n_blobs} blobs removed, {n_bytes:,} bytes")
        print(f"head {log.head}")
    return 0


def prune(run: Path, log: EventLog, kinds: Sequence[BlobKind]) -> tuple[int, int]:
    """Remove the blobs of these kinds that no other kind needs, and finish an earlier prune.

    Returns:
        How many blobs went, and the bytes that they took.

    Raises:
        UsageError: the run is not finished and needs them.
        LogWriteError: the disk is full or failing.
    """
    records, blobs = list(read(run)), Blobs(run)
    blobs.fence(log.check)
    _check_spare(records, kinds)
    given_up = set(pruned(records, blobs))
    chosen = _present(_of_kinds(records, kinds) - given_up, blobs)
    if chosen:
        event = BlobsPruned(
            blob_kinds=tuple(sorted(set(kinds))),
            n_blobs=len(chosen),
            n_bytes=sum(chosen.values()),
            list=blobs.put(listed(chosen)),
        )
        log.append([Entry(event, OPERATOR)])
    going = chosen | _present(given_up, blobs)
    blobs.remove_all(going)
    return len(going), sum(going.values())


def _check_spare(records: Sequence[Record], kinds: Iterable[BlobKind]) -> None:
    needed = sorted(ONLY_WHEN_FINISHED.intersection(kinds))
    if needed and not any(isinstance(r.event, RunFinished) for r in records):
        raise UsageError(
            f"the run is not finished and needs its blobs of kind {' and '.join(needed)} to go on; "
            "finish it first, or prune other kinds"
        )


def _of_kinds(records: Iterable[Record], kinds: Iterable[BlobKind]) -> set[Sha]:
    """The blobs that are of these kinds and of no other."""
    uses: defaultdict[Sha, set[BlobKind]] = defaultdict(set)
    for record in records:
        for named in named_by(record.event):
            uses[named.sha].add(named.kind)
    return {sha for sha, its in uses.items() if its.issubset(kinds)}


def _present(shas: Iterable[Sha], blobs: Blobs) -> dict[Sha, int]:
    """Those that are there, with their stored bytes."""
    return {sha: blobs.stored_bytes(sha) for sha in set(blobs.names()).intersection(shas)}
