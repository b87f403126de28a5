"""What each operation of a schedule waits for, and the chain of waits behind its end."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from targets.profiler.schedule import Operation

Reason = Literal["data", "engine", "buffer", "order", "launch"]
"""An input, a free engine, what an output overwrites, nothing known, or the launch itself."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why an operation does not begin earlier."""

    operation: int
    """Its number in the schedule."""
    reason: Reason
    after: int | None
    """The operation it waits for; None: the launch."""
    gap: int
    """Cycles between the end of that one and its own begin."""


@dataclass(slots=True)
class _Ends:
    """Operations that have one thing in common, by their end."""

    ends: list[int]
    numbers: list[int]

    def last(self, by: int, but: int) -> int | None:
        """The last one that has ended at ``by``, other than operation ``but``."""
        place = bisect_right(self.ends, by) - 1
        while place >= 0 and self.numbers[place] == but:
            place -= 1
        return self.numbers[place] if place >= 0 else None


class Waits:
    """Finds what operations wait for."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        writers: dict[int, list[int]] = defaultdict(list)
        users: dict[int, list[int]] = defaultdict(list)
        engines: dict[str, list[int]] = defaultdict(list)
        order = sorted(range(len(operations)), key=lambda n: (operations[n].end, n))
        for number in order:
            operation = operations[number]
            for tensor in operation.outputs:
                writers[tensor].append(number)
            for tensor in {*operation.inputs, *operation.outputs}:
                users[tensor].append(number)
            for context in operation.contexts:
                engines[context].append(number)
        self._writers = {key: self._by_end(numbers) for key, numbers in writers.items()}
        self._users = {key: self._by_end(numbers) for key, numbers in users.items()}
        self._engines = {key: self._by_end(numbers) for key, numbers in engines.items()}
        self._all = self._by_end(order)
        self._working = self._by_end([n for n in order if operations[n].cycles])

    def of(self, number: int) -> Wait:
        """Return what an operation waits for: of all reasons the one that lasts longest."""
        operation = self._operations[number]
        at = operation.begin
        writers = (self._writers[t] for t in operation.inputs if t in self._writers)
        engines = (self._engines[c] for c in operation.contexts)
        buffers = (self._users[t] for t in operation.outputs)
        known: tuple[tuple[Reason, Iterable[_Ends]], ...] = (
            ("data", writers), ("engine", engines), ("buffer", buffers), ("order", (self._all,)),
        )  # fmt: skip
        best: Wait | None = None
        for reason, groups in known:
            for group in groups:
                after = group.last(at, number)
                if after is None:
                    continue
                gap = at - self._operations[after].end
                if best is None or (gap < best.gap and (reason != "order" or not gap)):
                    best = Wait(number, reason, after, gap)
        return best or Wait(number, "launch", None, at)

    def chain(self) -> tuple[Wait, ...]:
        """Return the critical path, from the launch to the end of the schedule.

        The cycles of its operations and its gaps add up to the makespan.
        """
        operations = self._operations
        last = max(range(len(operations)), key=lambda n: (operations[n].end, operations[n].cycles))
        seen, path = {last}, [self.of(last)]
        while (after := path[-1].after) is not None:
            if after in seen:
                path[-1] = self._past(path[-1].operation)
                continue
            seen.add(after)
            path.append(self.of(after))
        return tuple(reversed(path))

    def _past(self, number: int) -> Wait:
        """What an operation waits for that is in a circle of operations without cycles."""
        at = self._operations[number].begin
        after = self._working.last(at, number)
        if after is None:
            return Wait(number, "launch", None, at)
        return Wait(number, "order", after, at - self._operations[after].end)

    def _by_end(self, numbers: list[int]) -> _Ends:
        return _Ends([self._operations[n].end for n in numbers], numbers)
