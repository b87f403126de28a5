"""A mailbox on a virtual clock: actors work side by side in one thread, and no time is waited."""

import heapq
import itertools
from collections.abc import Callable, Generator, Mapping
from typing import Any

from simpy import Event, Interrupt, PriorityStore
from simpy.resources.store import StoreGet

from actors.mailboxes import Delivery, handled, lost
from actors.messages import Actor, Answer, Command
from decisions.address import address
from sim.clock import VirtualClock
from sim.faults import Mishap
from sim.rates import MishapKind

POLL_S = 60.0
"""Virtual seconds between two looks at the operator's wishes while no answer comes."""
N_WAITS = 3
"""Waits that the time of a command's work is cut into; its actor may die at each."""
WHY_LOST: Mapping[MishapKind, str] = {
    "crash": "the actor died",
    "lost": "no reply came",
    "late": "no reply came in time",
}

Waiting = Generator[Event, Any, None]
"""A process of the world: it yields what it waits for."""


class VirtualMailbox:
    """Hands each command to its actor, and delivers the answer when its time has passed.

    Every actor takes one command at a time, the screening pool as many as it has workers; those
    that wait are taken, and those due at one instant are delivered, in the order of their places.

    Args:
        actors: one per address; they tell the time by ``clock``, and their work spends it.
        clock: of the world; this mailbox lives in it.
        workers: size of the screening pool.
        faults: what goes wrong with the next command.
    """

    def __init__(
        self,
        actors: Mapping[str, Actor],
        clock: VirtualClock,
        *,
        workers: int = 1,
        faults: Callable[[], Mishap | None] = lambda: None,
    ) -> None:
        self._actors, self._clock, self._faults = actors, clock, faults
        self._world = clock.world
        self._answers: list[tuple[int, int, int, Delivery]] = []
        self._numbers = itertools.count()
        self._queues = {name: PriorityStore(self._world) for name in actors}
        sizes = {name: workers if name == "screening" else 1 for name in actors}
        servers = {
            name: [self._world.process(self._serve(name, number)) for number in range(size)]
            for name, size in sizes.items()
        }
        self._pool = servers["screening"]
        self._away: dict[int, float] = {}
        """Seconds that workers of the pool are away."""

    def send(self, command: Command) -> None:
        """Queue a command at its actor."""
        self._queues[address(command.request)].put((command.place, command.seq, command))

    def receive(self, timeout_s: float) -> Delivery | None:
        """Let time pass until there is an answer, or for ``timeout_s`` of virtual time."""
        until_s = self._world.now + timeout_s
        while not self._answers and self._world.peek() <= until_s:
            self._world.step()
        while self._world.peek() <= self._world.now:  # others may answer at this very instant
            self._world.step()
        if self._answers:
            return heapq.heappop(self._answers)[3]
        if self._world.now < until_s:
            self._world.run(until_s)
        return None

    def lose_node(self, seconds: float) -> bool:
        """Take one half of the pool away for a while, with all that it works on.

        Returns:
            Whether there was anything to take away.
        """
        node = [number for number in range(0, len(self._pool), 2) if number not in self._away]
        for number in node:
            self._away[number] = seconds
            self._pool[number].interrupt()
        return bool(node)

    # ---- processes of the world ------------------------------------------------------------

    def _serve(self, name: str, number: int) -> Waiting:
        """An actor's life: one command after the other, with pauses while its node is away."""
        while True:
            taken = self._queues[name].get()
            try:
                yield taken
                yield from self._work(name, _command(taken))
            except Interrupt:
                taken.cancel()
                if taken.triggered:  # even if nobody has looked at it yet
                    self._answer(_command(taken), lost(name, "its node went away"))
                yield self._world.timeout(self._away[number])
                del self._away[number]

    def _work(self, name: str, command: Command) -> Waiting:
        """Handle a command at once, and let the time of the work pass, or what a crash leaves."""
        mishap = self._faults()
        n_waits = N_WAITS
        if mishap and mishap.kind == "crash":
            n_waits = int(mishap.share * (N_WAITS + 1))
        self._clock.spent()
        answer = handled(self._actors[name], name, command)
        took_s = self._clock.spent()
        for _ in range(n_waits):
            yield self._world.timeout(took_s / N_WAITS)
        if mishap is None:
            self._answer(command, answer)
            return
        self._answer(command, lost(name, WHY_LOST[mishap.kind]))
        if mishap.kind == "late":
            self._world.process(self._come_late(command, answer, mishap.for_s))

    def _come_late(self, command: Command, answer: Answer, seconds: float) -> Waiting:
        yield self._world.timeout(seconds)
        self._answer(command, answer)

    def _answer(self, command: Command, answer: Answer) -> None:
        delivery = Delivery(command.seq, address(command.request), answer)
        heapq.heappush(self._answers, (command.place, command.seq, next(self._numbers), delivery))


def _command(taken: StoreGet) -> Command:
    item: tuple[int, int, Command] = taken.value  # type: ignore[assignment]  # SimPy: Any | None
    return item[2]
