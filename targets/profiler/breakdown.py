"""Where the time of a schedule goes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from targets.profiler.schedule import DMA, NOOP, Buffer, Operation, Schedule
from targets.profiler.spans import Span, common, length, union
from targets.profiler.waits import Reason, Wait, Waits

CONTROL: Final = frozenset({"PeCore", NOOP})
"""Contexts that neither move nor compute anything."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One context's time; busy and idle add up to the makespan."""

    name: str
    busy: int
    idle: int
    n_operations: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which an engine is idle."""

    engine: str
    begin: int
    cycles: int
    before: Operation | None
    """What begins at its end; None: nothing until the end of the launch."""
    reason: Reason | None
    """What that waits for."""
    after: Operation | None
    """The same, where it is an operation."""


@dataclass(frozen=True, slots=True)
class Group:
    """All operations of one name and kind."""

    name: str
    kind: str
    n: int
    cycles: int
    critical: int
    """Cycles of those on the critical path."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What lives in one memory, by time."""

    name: str
    peak: int
    """Bytes."""
    at: int
    """Cycle of the first peak."""
    levels: tuple[tuple[int, int], ...]
    """Cycle and bytes alive from there on."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a schedule goes; all times in cycles."""

    title: str
    makespan: int
    operations: tuple[Operation, ...]
    engines: tuple[Engine, ...]
    """Busiest first, without those that do nothing."""
    both: int
    """DMA and some computing engine are busy at once."""
    neither: int
    """None of them is."""
    path: tuple[Wait, ...]
    """Critical path; its operations and gaps add up to the makespan."""
    gaps: tuple[Gap, ...]
    """Longest first."""
    groups: tuple[Group, ...]
    """Most critical first."""
    transfers: tuple[Operation, ...]
    """Those whose bytes are known, longest first."""
    memories: tuple[Memory, ...]

    @property
    def waiting(self) -> int:
        """Cycles of the critical path in which none of its operations runs."""
        return sum(wait.gap for wait in self.path)


def profile(schedule: Schedule) -> Profile:
    """Say where the time of a schedule goes."""
    operations, makespan = schedule.operations, schedule.makespan
    waits = Waits(operations)
    path = waits.chain()
    busy = _busy(operations)
    dma = busy.get(DMA, [])
    compute = union(s for name, spans in busy.items() if name not in {DMA, *CONTROL} for s in spans)
    working = {engine: spans for engine, spans in busy.items() if engine not in CONTROL}
    first = _first(operations)
    gaps = [
        Gap(engine, end, makespan - end, None, None, None)
        for engine, spans in working.items()
        if (end := spans[-1][1]) < makespan
    ]
    for engine, spans in working.items():
        gaps += _gaps(engine, operations, first[engine], spans, waits)
    transfers = [o for o in operations if o.is_transfer and o.n_bytes is not None]
    return Profile(
        title=schedule.title,
        makespan=makespan,
        operations=operations,
        engines=_engines(operations, busy, makespan),
        both=common(dma, compute),
        neither=makespan - length(union((*dma, *compute))),
        path=path,
        gaps=tuple(sorted(gaps, key=lambda g: (-g.cycles, g.begin, g.engine))),
        groups=_groups(operations, path),
        transfers=tuple(sorted(transfers, key=lambda o: (-o.cycles, o.begin))),
        memories=_memories(schedule.buffers),
    )


def _busy(operations: Iterable[Operation]) -> dict[str, list[Span]]:
    """When each engine is busy."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for operation in operations:
        for context in operation.contexts:
            if operation.cycles and context != NOOP:
                spans[context].append((operation.begin, operation.end))
    return {name: union(spans[name]) for name in sorted(spans)}


def _engines(
    operations: Sequence[Operation], busy: dict[str, list[Span]], makespan: int
) -> tuple[Engine, ...]:
    counts: dict[str, int] = defaultdict(int)
    for operation in operations:
        for context in operation.contexts:
            counts[context] += bool(operation.cycles)
    engines = [
        Engine(name, length(spans), makespan - length(spans), counts[name])
        for name, spans in busy.items()
    ]
    return tuple(sorted(engines, key=lambda e: (-e.busy, e.name)))


def _first(operations: Sequence[Operation]) -> dict[str, dict[int, int]]:
    """By engine: the number of the first operation that begins at a cycle."""
    first: dict[str, dict[int, int]] = defaultdict(dict)
    for number, operation in enumerate(operations):
        for context in operation.contexts if operation.cycles else ():
            first[context].setdefault(operation.begin, number)
    return first


def _gaps(
    engine: str,
    operations: Sequence[Operation],
    first: Mapping[int, int],
    busy: Sequence[Span],
    waits: Waits,
) -> Iterable[Gap]:
    """The stretches in which an engine is idle before an operation."""
    last = 0
    for begin, end in busy:
        if begin > last:
            wait = waits.of(first[begin])
            after = None if wait.after is None else operations[wait.after]
            yield Gap(engine, last, begin - last, operations[first[begin]], wait.reason, after)
        last = end


def _groups(operations: Sequence[Operation], path: Iterable[Wait]) -> tuple[Group, ...]:
    critical = {wait.operation for wait in path}
    sums: dict[tuple[str, str], list[int]] = {}
    for number, operation in enumerate(operations):
        if operation.cycles:
            found = sums.setdefault((operation.name, operation.kind), [0, 0, 0])
            found[0] += 1
            found[1] += operation.cycles
            found[2] += operation.cycles * (number in critical)
    groups = [Group(name, kind, *found) for (name, kind), found in sums.items()]
    return tuple(sorted(groups, key=lambda g: (-g.critical, -g.cycles, g.name, g.kind)))


def _memories(buffers: Sequence[Buffer]) -> tuple[Memory, ...]:
    names = sorted({buffer.memory for buffer in buffers})
    return tuple(_memory(name, [b for b in buffers if b.memory == name]) for name in names)


def _memory(name: str, buffers: Sequence[Buffer]) -> Memory:
    """What is alive: a buffer that ends where another one begins has made room for it."""
    changes: dict[int, int] = defaultdict(int)
    for buffer in buffers:
        changes[buffer.begin] += buffer.n_bytes
        changes[buffer.end] -= buffer.n_bytes
    alive, levels = 0, []
    for cycle in sorted(changes):
        alive += changes[cycle]
        levels.append((cycle, alive))
    at, peak = max(levels, key=lambda level: level[1])
    return Memory(name, peak, at, tuple(levels))
