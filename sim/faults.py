"""What goes wrong in a simulated world, and when: all of it follows from a seed."""

import heapq
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from sim.rates import KINDS, MISHAPS, OUTAGES, FaultKind, MishapKind, OutageKind, Rates

DAY_S = 86_400.0


class Mishap(NamedTuple):
    """What goes wrong with one command."""

    kind: MishapKind
    share: float
    """Of its work that is done by then, from 0 to 1."""
    for_s: float
    """By how much its reply is late."""


class Outage(NamedTuple):
    """What goes wrong with the world."""

    kind: OutageKind
    at_s: float
    """Since the start."""
    for_s: float
    share: float
    """Evenly drawn from 0 to 1: where within what is under way it strikes, or whom."""


class Faults:
    """Deals out the faults of one seed; each kind has a stream of its own.

    Attributes:
        n_struck: faults that have really happened, by kind; whoever inflicts an outage counts it.
    """

    def __init__(self, rates: Rates, seed: int) -> None:
        self._rates = rates
        self._draws = {kind: np.random.default_rng((seed, n)) for n, kind in enumerate(KINDS)}
        self.n_struck: dict[FaultKind, int] = dict.fromkeys(KINDS, 0)

    def of_command(self) -> Mishap | None:
        """What goes wrong with the next command."""
        kind = next((kind for kind in MISHAPS if self._chance(kind)), None)
        if kind is None:
            return None
        draw = self._draws[kind]
        return Mishap(kind, draw.random(), draw.exponential(self._rates.outage_s))

    def hangs(self) -> bool:
        """Whether the next device job hangs."""
        return self._chance("hang")

    def outages(self) -> Iterator[Outage]:
        """All outages in the order of time, without an end."""
        return heapq.merge(*map(self._outages, OUTAGES), key=lambda outage: outage.at_s)

    def _chance(self, kind: MishapKind | Literal["hang"]) -> bool:
        struck = bool(self._draws[kind].random() < getattr(self._rates, kind))
        self.n_struck[kind] += struck
        return struck

    def _outages(self, kind: OutageKind) -> Iterator[Outage]:
        draw, per_day, at_s = self._draws[kind], getattr(self._rates, kind), 0.0
        while per_day:
            at_s += draw.exponential(DAY_S / per_day)
            yield Outage(kind, at_s, draw.exponential(self._rates.outage_s), draw.random())
