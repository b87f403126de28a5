"""The compiler's static schedule: when each command would run if its cost model were true."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from sim.npu.expand import ENGINES, Command, Engine, expand
from sim.npu.program import Program
from sim.npu.static import StaticCost, static_costs
from sim.npu.toolchain import Toolchain


@dataclass(frozen=True)
class Schedule:
    """Static begin and end of every command, in static cycles."""

    program: Program
    commands: tuple[Command, ...]
    costs: tuple[StaticCost, ...]
    begins: tuple[float, ...]
    makespan: float
    """Last end and what closing the launch takes after it."""

    @property
    def order(self) -> list[int]:
        """Commands by begin; at the same time DMA first, then the order of the source."""
        dma = [c.site.engine != "dma" for c in self.commands]
        return sorted(range(len(dma)), key=lambda i: (self.begins[i], dma[i], i))


def schedule(program: Program, toolchain: Toolchain) -> Schedule:
    """Return the static schedule of ``program``.

    Each engine runs one command at a time. Whenever one is free it begins, of the commands whose
    inputs are complete, the one that stands earliest in the source.
    """
    commands = expand(program)
    costs = tuple(static_costs(commands, toolchain))
    static = toolchain.static
    begins = tuple(_begins(commands, [c.cycles for c in costs], static.start))
    last = max((b + c.cycles for b, c in zip(begins, costs, strict=True)), default=static.start)
    return Schedule(program, commands, costs, begins, last + static.end)


def _begins(commands: Sequence[Command], costs: Sequence[float], start: float) -> list[float]:
    waiting = _Waiting(commands)
    begins = [start] * len(commands)
    running: list[tuple[float, int]] = []
    idle = set(ENGINES)
    now = start
    while True:
        for engine in [e for e in ENGINES if e in idle and waiting.ready[e]]:
            index = heapq.heappop(waiting.ready[engine])
            begins[index] = now
            heapq.heappush(running, (now + costs[index], index))
            idle.remove(engine)
        if not running:
            return begins
        now = running[0][0]
        while running and running[0][0] == now:
            done = heapq.heappop(running)[1]
            idle.add(commands[done].site.engine)
            waiting.complete(done)


class _Waiting:
    """Commands that have not begun."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self._users: list[list[int]] = [[] for _ in commands]
        self._missing = [len(c.after) + len(c.synced) for c in commands]
        self.ready: dict[Engine, list[int]] = {e: [] for e in ENGINES}
        """Heaps of commands whose inputs are complete."""
        for index, command in enumerate(commands):
            for i in (*command.after, *command.synced):
                self._users[i].append(index)
            if not self._missing[index]:
                self.ready[command.site.engine].append(index)

    def complete(self, index: int) -> None:
        """Note that a command is done."""
        for user in self._users[index]:
            self._missing[user] -= 1
            if not self._missing[user]:
                heapq.heappush(self.ready[self._commands[user].site.engine], user)
