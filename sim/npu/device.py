"""What the device takes for a program: the truth that readings scatter around.

In each cluster a PE core walks the commands in the order of their static begin and puts them into
the queue of their engine; it stalls while that queue is full. The head of a queue starts when its
inputs are complete, so a command that waits holds up all behind it. The tensor unit has one queue:
main and sub take turns. Clusters meet only in the HBM's bandwidth and in syncs.

Every time therefore follows from commands earlier in that order, in the same cluster, from the
stores of both clusters at a sync, and, for cluster 1, from when cluster 0 streams.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import itemgetter
from typing import NamedTuple

from sim.npu.expand import Command
from sim.npu.faults import faults
from sim.npu.latency import latencies
from sim.npu.program import Position, Program
from sim.npu.schedule import Schedule, schedule
from sim.npu.toolchain import DeviceCosts, Toolchain


class Span(NamedTuple):
    """One command in one cluster, in device cycles from the launch."""

    command: int
    begin: float
    end: float
    """When its engine is free again."""
    complete: float
    """When its result can be used."""


@dataclass(frozen=True)
class Trace:
    """What happens in one launch without noise."""

    cycles: float
    """Device cycles until the launch is over; infinite if it hangs."""
    hang: Position | None
    """Of the statement at which it hangs."""
    clusters: tuple[tuple[Span, ...], ...]
    """The commands of each cluster in use, as its PE core walks them; as if nothing hung."""


def device_time(program: Program, toolchain: Toolchain) -> Trace:
    """Run ``program`` once, compiled by the toolchain itself; the same every time."""
    return launch(schedule(program, toolchain), toolchain)


def launch(plan: Schedule, toolchain: Toolchain) -> Trace:
    """Run what was scheduled once on a toolchain's device."""
    program = plan.program
    chip = _Chip(plan.commands, plan.order, toolchain)
    for cluster in chip.clusters:
        chip.walk(cluster, None)
    clusters = tuple(tuple(c.spans.values()) for c in chip.clusters)
    last = max((s.complete for s in chain(*clusters)), default=toolchain.device.start)
    hang = next((f.position for f in faults(program) if f.kind == "hang"), None)
    return Trace(last + toolchain.device.end if hang is None else inf, hang, clusters)


class _Queue:
    """In front of one engine of one cluster."""

    def __init__(self, size: int) -> None:
        self.begins: deque[float] = deque([0.0] * size, maxlen=size)
        """Of the last commands, as many as can wait: the next one finds a place at the first."""
        self.free = 0.0
        """When the engine has done all that was queued."""


class _Cluster:
    """What one cluster has done, and what it does next."""

    def __init__(self, todo: Iterable[int], costs: DeviceCosts) -> None:
        self.todo = iter(todo)
        self.spans: dict[int, Span] = {}
        self.streams: list[tuple[float, float]] = []
        """When its DMA moves bytes of loads."""
        self._core = costs.start
        self._command = costs.command
        self._dma = _Queue(costs.dma_queue)
        self._tensor = _Queue(costs.tensor_queue)

    def begin(self, command: Command, synced: float) -> float:
        """Queue ``command``; return when it begins, not before ``synced``."""
        queue = self._queue(command)
        put = max(self._core, queue.begins[0])
        self._core = put + self._command
        done = [self.spans[i].complete for i in command.after if i in self.spans]
        begin = max(put, queue.free, synced, *done)
        queue.begins.append(begin)
        return begin

    def finish(self, command: Command, span: Span) -> None:
        """Note what became of the command that began last."""
        self._queue(command).free = span.end
        self.spans[span.command] = span

    def _queue(self, command: Command) -> _Queue:
        return self._dma if command.site.engine == "dma" else self._tensor


class _Chip:
    """The clusters in use."""

    def __init__(
        self, commands: Sequence[Command], order: Sequence[int], toolchain: Toolchain
    ) -> None:
        self._commands = commands
        self._costs = toolchain.device
        self._latencies = latencies(commands, toolchain)
        n_clusters = max((c.site.n_clusters for c in commands), default=1)
        self.clusters = tuple(
            _Cluster([i for i in order if commands[i].site.n_clusters > k], toolchain.device)
            for k in range(n_clusters)
        )

    def walk(self, cluster: _Cluster, until: int | None) -> None:
        """Run the commands of ``cluster`` up to ``until``, or to the end."""
        if until in cluster.spans:
            return
        for index in cluster.todo:
            self._run(cluster, index)
            if index == until:
                return

    def _run(self, cluster: _Cluster, index: int) -> None:
        command, latency = self._commands[index], self._latencies[index]
        begin = cluster.begin(command, self._synced(command))
        end = begin + latency.fixed
        if latency.streamed:
            end = self._stream(cluster, end, latency.streamed)
        cluster.finish(command, Span(index, begin, end, end + latency.drain))

    def _synced(self, command: Command) -> float:
        """Return when the sync before ``command`` is over.

        Cluster 0 may be ahead of cluster 1 here. It streams nothing while it waits, so that
        cluster 1, in catching up with the stores, meets only streams that are known.
        """
        if not command.synced:
            return 0.0
        stored = 0.0
        for store in command.synced:
            for cluster in self.clusters[: self._commands[store].site.n_clusters]:
                self.walk(cluster, store)
                stored = max(stored, cluster.spans[store].complete)
        return stored + (self._costs.sync if len(self.clusters) == 2 else self._costs.sync_alone)

    def _stream(self, cluster: _Cluster, begin: float, n_bytes: float) -> float:
        """Return when the stream ends."""
        first = self.clusters[0]
        if cluster is first:
            end = begin + n_bytes / self._costs.cluster_rates[0]
        else:
            rates = self._costs.cluster_rates[1], self._costs.second_alone
            end = _shared_end(begin, n_bytes, first.streams, rates)
        cluster.streams.append((begin, end))
        return end


def _shared_end(
    now: float, left: float, others: Sequence[tuple[float, float]], rates: tuple[float, float]
) -> float:
    """Return when ``left`` bytes are through.

    Args:
        now: begin of the stream.
        left: its bytes.
        others: begins and ends of the other cluster's streams, in order.
        rates: bytes per cycle while the other streams, and while it does not.
    """
    shared, alone = rates
    for begin, end in others[bisect_right(others, now, key=itemgetter(1)) :]:
        for until, rate in ((begin, alone), (end, shared)):
            moved = max(until - now, 0.0) * rate
            if moved >= left:
                return now + left / rate
            left -= moved
            now = max(now, until)
    return now + left / alone
