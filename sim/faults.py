"""What goes wrong in a simulated world, and when: all of it follows from a seed."""

import heapq
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field

from events.campaign import Settings

DAY_S = 86_400.0

MishapKind = Literal["crash", "lost", "late"]
"""The actor dies at one of its waits; its reply is lost; it is told lost, and yet comes."""
OutageKind = Literal["node", "full", "kill", "torn", "power", "update", "pause"]
"""A node of the screening pool goes away; the disk is full; the process is killed anywhere, or in
a write of which a part is done, or by a power cut, which forgets what was not synced; the operator
updates the toolchain, or pauses the run."""
FaultKind = MishapKind | Literal["hang"] | OutageKind
"""And a device job that hangs until its time limit."""
MISHAPS: tuple[MishapKind, ...] = get_args(MishapKind)
OUTAGES: tuple[OutageKind, ...] = get_args(OutageKind)
KINDS: tuple[FaultKind, ...] = (*MISHAPS, "hang", *OUTAGES)


class Rates(Settings):
    """How often each kind of fault happens."""

    crash: float = Field(default=0.01, ge=0, le=1)
    lost: float = Field(default=0.005, ge=0, le=1)
    late: float = Field(default=0.005, ge=0, le=1)
    """Share of the commands; the three are drawn in this order."""
    hang: float = Field(default=0.01, ge=0, le=1)
    """Share of the device jobs."""
    node: float = Field(default=2.0, ge=0)
    full: float = Field(default=1.0, ge=0)
    kill: float = Field(default=2.0, ge=0)
    torn: float = Field(default=1.0, ge=0)
    power: float = Field(default=1.0, ge=0)
    update: float = Field(default=0.25, ge=0)
    pause: float = Field(default=1.0, ge=0)
    """Times per day, on average."""
    outage_s: float = Field(default=900.0, gt=0)
    """Mean length of an outage, and by how much a late reply is late, in seconds."""


CALM = Rates(crash=0, lost=0, late=0, hang=0, node=0, full=0, kill=0, torn=0, power=0, update=0,
             pause=0)  # fmt: skip
"""Nothing goes wrong."""


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
    """Evenly drawn from 0 to 1: where within what is under way it strikes."""


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
