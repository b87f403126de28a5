"""One simulated campaign: it is started, killed and resumed as its seed says, to its end."""

import hashlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import cast

from simpy import Event

from actors.crew import crew
from actors.director import Director
from actors.opening import first_event
from actors.rigged import Rigged
from actors.virtual_mailbox import POLL_S, VirtualMailbox
from decisions.address import DIRECTOR
from decisions.audit import audit
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.campaign import Campaign
from events.errors import LogError, LogWriteError
from events.log import Entry, EventLog, batches, read
from events.projections.state import State
from events.vocabulary import Order, Record, RunResumed
from sim.clock import VirtualClock
from sim.disk import Killed, Manner, SimulatedDisk
from sim.faults import DAY_S, Faults, Outage
from sim.invariants import Invariants, ViolationError
from sim.orders import Given, given
from sim.rates import ORDERS, FaultKind, Rates
from targets.protocol import Target, VirtualTarget

STALL_S = 7 * DAY_S
"""A run that waits longer than this waits for ever."""
DOWN_S = 30.0
"""From the death of a process to its successor."""
MAX_OPERATIONS = 40
"""Of the disk, within which a process dies that is not killed at once."""
NEVER = Outage("stop", inf, 0.0, 0.0)
STRUCK: Mapping[str, FaultKind] = {
    "operator_paused": "pause",
    "operator_hinted": "hint",
    "candidate_vetoed": "veto",
}
"""Which fault a kind of event is."""


@dataclass(frozen=True)
class Outcome:
    """How a simulated campaign went."""

    seed: int
    days: float
    """Virtual."""
    n_records: int
    n_candidates: int
    n_processes: int
    n_struck: dict[FaultKind, int]
    violation: str | None
    """None if all that must hold held."""


class Simulation:
    """A campaign in a world of its own.

    Args:
        run: the run folder, new.
        campaign: what to run; its seed is replaced by ``seed``.
        target: what to run it on.
        rates: of the faults.
        seed: of everything that is drawn.
    """

    def __init__(
        self, run: Path, campaign: Campaign, target: VirtualTarget, rates: Rates, seed: int
    ) -> None:
        self._run, self._target, self._seed = run, target, seed
        self._campaign = campaign.model_copy(update={"seed": seed})
        self._clock = VirtualClock()
        self._disk = SimulatedDisk(self._now, seed)
        self._faults = Faults(rates, seed)
        self._outages = self._faults.outages()
        self._next = next(self._outages, NEVER)
        self._killing: Manner = "kill"
        self._stopping: Outage | None = None
        self._inbox: list[Given] = []
        self._invariants = Invariants()
        self._n_processes = self._n_updates = 0
        self._heard_s = 0.0
        self._state = State()

    def finish(self) -> Outcome:
        """Take the campaign to its end, or to the first violation."""
        violation = None
        try:
            while not self._live():
                pass
            self._examine()
        except Exception as error:  # noqa: BLE001  # whatever a simulated run raises is a finding
            violation = f"{type(error).__name__}: {error}"
        return Outcome(
            seed=self._seed,
            days=self._clock.world.now / DAY_S,
            n_records=len(self._invariants.records),
            n_candidates=self._invariants.state.tree.n_search,
            n_processes=self._n_processes,
            n_struck=self._faults.n_struck,
            violation=violation,
        )

    # ---- one process -----------------------------------------------------------------------

    def _live(self) -> bool:
        """One process, from its start to its end or death; return whether the run is finished."""
        self._n_processes += 1
        self._disk.revive()
        self._stopping, self._heard_s = None, self._now()
        self._clock.world.process(self._strike())
        self._catch_up()
        down_s = DOWN_S
        try:
            self._state = self._drive()
            if self._stopping and not self._state.finished:
                self._faults.n_struck[self._stopping.kind] += 1
                down_s = self._stopping.for_s
        except Killed:
            self._faults.n_struck[self._killing] += 1
        except LogWriteError:
            if self._now() >= self._disk.full_until_s:
                raise
            self._faults.n_struck["full"] += 1
            down_s = self._disk.full_until_s - self._now()
        self._clock.restart(down_s)
        return self._state.finished is not None

    def _drive(self) -> State:
        blobs = Blobs(self._run, self._disk)
        with EventLog.open(self._run, self._clock.time_ns, self._disk) as log:
            if log.repaired:
                log.append([Entry(log.repaired, DIRECTOR)])
            records = list(read(self._run))
            self._invariants.reread(records)
            rig = Rigged(self._target, self._clock, self._faults.hangs, self._n_updates)
            self._rig, target = rig, cast("Target", rig)
            actors = crew(target, self._run / "lease", {}, self._clock)
            self._mailbox = VirtualMailbox(
                actors,
                self._clock,
                workers=self._campaign.screening.workers,
                faults=self._faults.of_command,
            )
            director = Director(log, blobs, self._mailbox, watch=self._hear, orders=self._orders)
            if self._invariants.state.start is None:
                seed = hashlib.sha256(f"secret of {self._seed}".encode()).hexdigest()
                director.start(
                    first_event(self._campaign, target, blobs, secret_seed=seed, versions={})
                )
            else:
                mark = RunResumed(versions={}, rules=dict(IN_FORCE), toolchain=target.fingerprint())
                director.resume(records, mark)
            self._invariants.agree(director.state)
            return director.run(self._stops, POLL_S)

    def _hear(self, record: Record, state: State) -> None:
        self._heard_s = self._now()
        if kind := STRUCK.get(record.event.kind):
            self._faults.n_struck[kind] += 1
        self._invariants.follow(record, state)

    def _orders(self) -> Iterator[Order]:
        for due in [due for due in self._inbox if due.at_s <= self._now()]:
            yield due.order
            self._inbox.remove(due)

    def _stops(self) -> bool:
        if self._now() - self._heard_s > STALL_S:
            seq = self._invariants.state.seq
            raise ViolationError(seq, "the run goes on", f"nothing for {STALL_S:g} s")
        return self._stopping is not None

    # ---- faults of the world ---------------------------------------------------------------

    def _strike(self) -> Generator[Event, None, None]:
        """Let the outages of a process's time happen."""
        while True:
            yield self._clock.world.timeout(self._next.at_s - self._now())
            self._inflict(self._due())

    def _due(self) -> Outage:
        outage, self._next = self._next, next(self._outages, NEVER)
        return outage

    def _inflict(self, outage: Outage) -> None:
        match outage.kind:
            case "node":
                self._faults.n_struck["node"] += self._mailbox.lose_node(outage.for_s)
            case "full":
                self._fill(outage)
            case "kill" | "torn" | "power":
                self._kill(outage.kind, (2 * outage.share - 1) * MAX_OPERATIONS)
            case "update":
                self._update()
                self._rig.update(self._n_updates)
            case "stop":
                self._stopping = outage
            case _:
                self._order(outage)

    def _catch_up(self) -> None:
        """Outages while no process lived: a kill hits the next one as it starts, a disk is full."""
        while self._next.at_s <= self._now():
            match (outage := self._due()).kind:
                case "full":
                    self._fill(outage)
                case "kill" | "torn" | "power" as manner:
                    self._kill(manner, outage.share * MAX_OPERATIONS)
                case "update":
                    self._update()
                case kind if kind in ORDERS:
                    self._order(outage)
                case _:
                    pass

    def _update(self) -> None:
        """The toolchain is replaced, under a process that lives or between two."""
        self._n_updates += 1
        self._faults.n_struck["update"] += 1

    def _order(self, outage: Outage) -> None:
        """Put orders where they outlive the process."""
        self._inbox += given(outage, self._invariants.state)

    def _kill(self, manner: Manner, n_operations: float) -> None:
        self._killing = manner
        self._disk.kill_after(n_operations, manner)

    def _fill(self, outage: Outage) -> None:
        self._disk.full_until_s = max(self._disk.full_until_s, outage.at_s + outage.for_s)

    # ---- the end ---------------------------------------------------------------------------

    def _examine(self) -> None:
        """Verify the log of a finished run, and audit it."""
        records = [record for _, batch in batches(self._run) for record in batch]
        self._invariants.reread(records)
        self._invariants.agree(self._state)
        for finding in audit(records, Blobs(self._run).get, LogError):
            raise ViolationError(finding.seq, "audit finds nothing", finding.problem)

    def _now(self) -> float:
        return float(self._clock.world.now)
