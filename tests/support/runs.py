"""Runs of the fake target in one process, for tests."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from actors.crew import crew
from actors.director import Director, Orders
from actors.local_mailbox import LocalMailbox
from actors.opening import first_event
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.campaign import Acceptance, Campaign, Search
from events.log import EventLog, read
from events.projections.state import State
from events.vocabulary import Record, Request, RunResumed
from tests.support.fake_target import FakeTarget
from tests.support.operated import Operator

SECRET = "5" * 64


def campaign(**search: int) -> Campaign:
    """A short campaign of both fake kernels."""
    return Campaign(
        name="fake",
        target="fake",
        kernels=("alpha", "beta"),
        search=Search(**{"max_candidates": 24, **search}),
        acceptance=Acceptance(noise_pairs=6, final_pairs=6, pairs_per_job=3),
    )


def ticking(start: int = 0) -> Callable[[], int]:
    """A clock that moves one millisecond per reading, ns."""
    ticks = itertools.count(start, 1_000_000)
    return lambda: next(ticks)


def director(
    run: Path,
    log: EventLog,
    target: FakeTarget,
    clock: Callable[[], float] = lambda: 0.0,
    orders: Orders = lambda: (),
) -> Director:
    """A director over in-process actors; ``clock`` is what they take their time by."""
    actors = crew(target, run / "lease", {}, clock)
    return Director(log, Blobs(run), LocalMailbox(actors), orders=orders)


def begin(
    run: Path,
    settings: Campaign,
    target: FakeTarget | None = None,
    *,
    clock: Callable[[], float] = lambda: 0.0,
    orders: Orders = lambda: (),
) -> State:
    """Run a campaign from its first event to its end, or until the operator stops it."""
    target = target or FakeTarget()
    with EventLog.open(run, ticking()) as log:
        boss = director(run, log, target, clock, orders)
        if isinstance(orders, Operator):
            orders.state = lambda: boss.state
        first = first_event(settings, target, Blobs(run), secret_seed=SECRET, versions={})
        boss.start(first)
        return boss.run()


def go_on(run: Path, target: FakeTarget | None = None) -> State:
    """Resume a run and take it to its end."""
    records = list(read(run))
    with EventLog.open(run, ticking()) as log:
        boss = director(run, log, target or FakeTarget())
        boss.resume(
            records,
            RunResumed(versions={}, rules=dict(IN_FORCE), toolchain={"compiler": "fake 1.0"}),
        )
        return boss.run()


def story(records: Iterator[Record]) -> list[str]:
    """The log as a run that was never killed would have it, without numbers and times.

    Marks of resumptions, notes that a request was lost, and its second issue are left out, and so
    are the fencing tokens: a job that was issued again ran under another lease.
    """
    kept, lost = [], set()
    for record in records:
        if record.event.kind in ("run_resumed", "log_repaired"):
            continue
        if record.event.kind == "request_lost":
            lost.add(record.because[0])
        elif isinstance(record.event, Request) and record.because[0] in lost:
            lost.discard(record.because[0])
        else:
            kept.append(f"{record.actor}: {record.event.model_dump_json(exclude={'token'})}")
    return kept
