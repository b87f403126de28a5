"""Which change of a kernel to propose next: the promising ones by static cost, and some others."""

import hashlib
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Final

from sim.npu.printing import print_kernel
from sim.npu.schedule import Schedule
from sim.npu.syntax import KernelText
from sim.npu.toolchain import Toolchain
from targets.sim.moves.attempt import attempt
from targets.sim.moves.change import Change
from targets.sim.moves.registry import MOVES
from targets.sim.moves.settle import settled

_CHUNK: Final = 40
"""Changes tried before the best of them are proposed."""
_LATE: Final = 4
"""Proposals of each chunk that had been postponed: the static model is often wrong."""
_PAIRS: Final = 0.3
"""Share of pairs among the changes tried."""
_SECONDS: Final = 8
"""Changes that are tried on top of another one."""
_BETTER: Final = 0.9995
_NEUTRAL: Final = 1.025
_HOPELESS: Final = 1.25
"""Static makespans over that of the kernel before: up to the first a change is promising, up to the
second as good as any, beyond the last never proposed."""


@dataclass(frozen=True)
class Proposal:
    """A change that compiles."""

    name: str
    why: str
    source: str
    """The kernel as changed."""
    ratio: float
    """Its static makespan over that of the kernel before."""


def _digest(source: str) -> bytes:
    return hashlib.sha256(source.encode()).digest()


def _chance(ratio: float) -> float:
    """Return how probably a change is proposed at once, by what the static model says of it."""
    if ratio < _BETTER:
        return 1.0
    return 0.35 if ratio < _NEUTRAL else 0.1


class Search:
    """The proposals for one kernel, in an order that follows from the kernel and a seed."""

    def __init__(
        self,
        kernel: KernelText,
        toolchain: Toolchain,
        weights: Mapping[str, float],
        seed: int,
    ) -> None:
        self._kernel = kernel
        self._toolchain = toolchain
        self._weights = weights
        source = print_kernel(kernel)
        self._random = random.Random(f"{seed} {source}")
        self._seen = {_digest(source)}
        self._known: list[Proposal] = []
        self._rest = self._proposals()
        self._lock = Lock()

    @cached_property
    def schedule(self) -> Schedule | None:
        """Of the kernel itself; None if it is illegal."""
        return attempt(self._kernel, self._toolchain)

    def first(self, tried: Collection[str]) -> Proposal | None:
        """Return the first proposal whose name is not among ``tried``; None if there is none.

        Proposals are made as they are needed. Any thread may ask.
        """
        with self._lock:
            for known in self._known:
                if known.name not in tried:
                    return known
            for new in self._rest:
                self._known.append(new)
                if new.name not in tried:
                    return new
        return None

    def _proposals(self) -> Iterator[Proposal]:
        if self.schedule is None:
            return
        changes = self._mixed()
        postponed: list[Proposal] = []
        while chunk := list(islice(changes, _CHUNK)):
            tried = [p for change in chunk if (p := self._tried(change))]
            now = [p for p in tried if self._random.random() < _chance(p.ratio)]
            postponed += [p for p in tried if p not in now]
            self._random.shuffle(postponed)
            yield from sorted(now, key=lambda p: p.ratio)
            yield from (postponed.pop() for _ in range(min(_LATE, len(postponed))))
        yield from postponed

    def _tried(self, change: Change) -> Proposal | None:
        kernel = settled(change.make())
        source = print_kernel(kernel)
        if _digest(source) in self._seen:
            return None
        self._seen.add(_digest(source))
        plan = attempt(kernel, self._toolchain)
        assert self.schedule is not None
        if plan is None or plan.makespan > _HOPELESS * self.schedule.makespan:
            return None
        ratio = plan.makespan / self.schedule.makespan
        return Proposal(change.name, change.why, source, ratio)

    def _mixed(self) -> Iterator[Change]:
        """Yield changes and pairs of them in random order."""
        singles = iter(self._shuffled(self._kernel))
        pairs = self._pairs()
        while True:
            chosen = pairs if self._random.random() < _PAIRS else singles
            change = next(chosen, None) or next(pairs, None)
            if change is None:
                return
            yield change

    def _pairs(self) -> Iterator[Change]:
        """Yield changes of changed kernels."""
        for first in self._shuffled(self._kernel):
            changed = settled(first.make())
            if attempt(changed, self._toolchain) is None:
                continue
            for second in self._some(changed):
                name = f"{first.name} + {second.name}"
                yield Change(name, f"{first.why}; then {second.why}", second.make)

    def _some(self, kernel: KernelText) -> Iterator[Change]:
        """Yield a change of each of a few moves."""
        moves, often = zip(*self._weights.items(), strict=True)
        for move in dict.fromkeys(self._random.choices(moves, often, k=_SECONDS)):
            if found := list(MOVES[move](kernel)):
                change = self._random.choice(found)
                yield replace(change, name=f"{move}: {change.name}")

    def _shuffled(self, kernel: KernelText) -> list[Change]:
        """Return all changes of a kernel: an exponential race in which moves have weights."""
        found: list[tuple[float, Change]] = []
        for move, propose in MOVES.items():
            named = {f"{move}: {change.name}": change for change in propose(kernel)}
            rate = self._weights[move] / max(len(named), 1)
            for name, change in named.items():
                found.append((self._random.expovariate(rate), replace(change, name=name)))
        return [change for _, change in sorted(found, key=lambda pair: pair[0])]
