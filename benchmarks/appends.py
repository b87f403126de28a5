"""Durable appends to the log and to other stores: in groups of several sizes, and by many threads.

Ratios come from rounds in which each store does the same work in turn, and are the medians of the
rounds' ratios. On a busy machine they compare the waits for a processor, unless all runs at
real-time priority (``chrt -f 1``).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.noise import Rng
from benchmarks.stores import Eventsourcing, Kernelwright, Raw, Sqlite, Store, made, texts
from benchmarks.table import Row

STORES: dict[str, Callable[[Path], Store]] = {
    "log": Kernelwright,
    "eventsourcing": Eventsourcing,
    "sqlite": Sqlite,
    "raw": Raw,
}
GROUPS = {1: 60, 10: 15, 100: 5}
"""Events an append: appends a round."""
TARGETS = {
    (1, "eventsourcing"): ">= 2.5",
    (1, "raw"): ">= 0.8",
    (100, "eventsourcing"): ">= 4.5",
}
WARM_UP = 40
"""Groups of 100 small events that every store holds before it is measured."""
PRODUCERS = 64
EACH = 6
"""Events that a producer appends in a round, one after the other."""

Rates = Mapping[str, list[float]]
"""Events per second of every store in every round."""


def appends(folder: Path, rounds: int) -> Iterator[Row]:
    """Durable appends of one, ten and a hundred events, and of one by each of many threads."""
    for what, largest in {"all sizes, large ones as blobs": 3, "small events only": 1}.items():
        for group, n in GROUPS.items():
            rates = _rates(folder / f"{largest} {group}", group, n, rounds, largest)
            targets = {name: TARGETS.get((group, name), "") for name in STORES}
            yield from _rows(f"append {group} a sync, {what}", rates, targets)
    rates = _together(folder / "together", rounds)
    what = f"{PRODUCERS} producers, each acknowledged, small events"
    yield from _rows(what, rates, {"eventsourcing": ">= 12"})


def _rows(what: str, rates: Rates, targets: Mapping[str, str]) -> Iterator[Row]:
    ours, *others = rates
    yield Row(f"{what}: events/s", f"{median(rates[ours]):,.0f}")
    for name in others:
        ratio = median(our / its for our, its in zip(rates[ours], rates[name], strict=True))
        what = f"  times {name} ({median(rates[name]):,.0f}/s)"
        yield Row(what, f"{ratio:.2f}", targets.get(name, ""))


def _rates(folder: Path, group: int, n: int, rounds: int, largest: int) -> Rates:
    rng = np.random.default_rng(group)
    with ExitStack() as stack:
        stores = {name: make(made(folder / name)) for name, make in STORES.items()}
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


def _together(folder: Path, rounds: int) -> Rates:
    rng = np.random.default_rng(PRODUCERS)
    with ExitStack() as stack:
        log, library = Kernelwright(made(folder / "log")), Eventsourcing(made(folder / "library"))
        own = [library.another() for _ in range(PRODUCERS)]
        stack.callback(log.close)
        stack.callback(library.close)
        pool = stack.enter_context(ThreadPoolExecutor(PRODUCERS))
        stores: dict[str, list[Store]] = {"log": [log] * PRODUCERS, "eventsourcing": [*own]}
        found: dict[str, list[float]] = {name: [] for name in stores}
        for _, (name, producers) in product(range(rounds), stores.items()):
            found[name].append(_rate_of_all(pool, producers, rng))
    return found


def _rate_of_all(pool: ThreadPoolExecutor, producers: list[Store], rng: Rng) -> float:
    """Events per second of threads that append one event at a time."""
    work = [[[text] for text in texts(rng, EACH, largest=1)] for _ in producers]
    start = time.perf_counter()
    deque(pool.map(lambda store, mine: deque(map(store.append, mine), 0), producers, work), 0)
    return EACH * len(producers) / (time.perf_counter() - start)
