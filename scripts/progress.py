"""What a person or a program sees of a run while it goes on."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from events.projections.state import State
from events.projections.tree import Node, Status
from events.vocabulary import (
    CandidateAccepted,
    CandidateWithdrawn,
    HarnessChecked,
    KernelFinished,
    LogRepaired,
    Order,
    Record,
    RequestLost,
    RunFinished,
    RunInterrupted,
    RunResumed,
    ScreeningRequested,
    SearchClosed,
    TurnFailed,
    WorkAbandoned,
)
from scripts.operated import worded
from scripts.plain import one_line
from scripts.readings import stand_in
from scripts.records.lines import as_json

REDRAW_S = 0.25
HEARTBEAT_S = 15.0
UNKNOWN = 1000.0
"""Speed-ups from here on are the end of what a test looked at, not an estimate."""
NOTEWORTHY = frozenset({
    "run_resumed", "run_interrupted", "operator_paused", "operator_continued", "operator_hinted",
    "candidate_vetoed", "budget_changed", "log_repaired", "turn_failed", "turn_dropped",
    "candidate_proposed", "candidate_screened", "candidate_accepted", "candidate_rejected",
    "candidate_shelved", "candidate_withdrawn", "harness_checked", "job_failed", "request_lost",
    "work_abandoned", "fact_learned", "kernel_finished", "search_closed", "run_finished",
})  # fmt: skip
"""Kinds of events that ``--json`` prints; the first event, with the secret seed, is not one."""

Clock = Callable[[], float]


class View(Protocol):
    """One way to show a run."""

    def watch(self, record: Record, state: State) -> None:
        """Take in a record that was just appended."""
        ...

    def tick(self) -> None:
        """Let time pass; called several times a second while the director waits."""
        ...

    def say(self, text: str) -> None:
        """Tell a person something that is not in the record."""
        ...

    def close(self) -> None:
        """Show nothing more."""
        ...


class Guarded:
    """A view that can fail without harm to the run: it goes dark, and says so once."""

    def __init__(self, view: View) -> None:
        self._view: View | None = view

    def watch(self, record: Record, state: State) -> None:
        """Take in a record that was just appended."""
        self._try(lambda view: view.watch(record, state))

    def tick(self) -> None:
        """Let time pass."""
        self._try(lambda view: view.tick())

    def say(self, text: str) -> None:
        """Tell a person something that is not in the record."""
        self._try(lambda view: view.say(text))

    def close(self) -> None:
        """Show nothing more."""
        self._try(lambda view: view.close())
        self._view = None

    def _try(self, show: Callable[[View], None]) -> None:
        if self._view is None:
            return
        try:
            show(self._view)
        except Exception as e:  # noqa: BLE001  # a run of days does not end for its display
            self._view = None
            print(f"no more progress is shown ({type(e).__name__}: {e})", file=sys.stderr)


def view(*, quiet: bool, as_json: bool, clock: Clock = time.monotonic) -> Guarded:
    """Choose the view for this process's output."""
    if as_json:
        return Guarded(JsonLines(sys.stdout))
    if quiet:
        return Guarded(Silent())
    if sys.stdout.isatty():
        return Guarded(Panel(Console(), clock))
    return Guarded(Lines(sys.stdout, clock))


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Tell a person something that is not in the record."""

    def watch(self, record: Record, state: State) -> None:
        """Take in a record that was just appended."""

    def tick(self) -> None:
        """Let time pass."""

    def close(self) -> None:
        """Show nothing more."""


class JsonLines(Silent):
    """One JSON line per noteworthy record."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def watch(self, record: Record, state: State) -> None:
        """Print a noteworthy record."""
        if record.event.kind in NOTEWORTHY:
            print(as_json(record), file=self._out, flush=True)


class Lines:
    """One plain line per piece of news, and a heartbeat between them."""

    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out, self._clock = out, clock
        self._last = clock()
        self._taken = self._last
        self._state: State | None = None

    def watch(self, record: Record, state: State) -> None:
        """Print news."""
        self._state, self._taken = state, self._clock()
        if text := news(record, state):
            self._print(state, text)
        self.tick()

    def tick(self) -> None:
        """Print a heartbeat when nothing was printed for a while."""
        if self._state is not None and self._clock() - self._last >= HEARTBEAT_S:
            self._print(self._state, heartbeat(self._state))

    def close(self) -> None:
        """Show nothing more."""
        self._state = None

    def say(self, text: str) -> None:
        """Tell a person something that is not in the record."""
        print(text, file=self._out, flush=True)

    def _print(self, state: State, text: str) -> None:
        self._last = self._clock()
        since = state.spending.wall_s + self._last - self._taken
        print(f"[{hms(since)}] {text}", file=self._out, flush=True)


class Panel:
    """A table that is redrawn in place, with the news above it."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock = console, clock
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()
        self._drawn = self._taken = clock()
        self._state: State | None = None

    def watch(self, record: Record, state: State) -> None:
        """Print news, and redraw."""
        self._state, self._taken = state, self._clock()
        if text := news(record, state):
            self._console.print(Text(f"[{hms(state.spending.wall_s)}] {text}"))
        self.tick()

    def tick(self) -> None:
        """Redraw, though not more often than a person can read."""
        now = self._clock()
        if self._state is not None and now - self._drawn >= REDRAW_S:
            self._drawn = now
            self._live.update(_panel(self._state, now - self._taken), refresh=True)

    def say(self, text: str) -> None:
        """Print above the table."""
        self._console.print(Text(text))

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()


# ---- what there is to say ------------------------------------------------------------------


def news(record: Record, state: State) -> str | None:
    """One line about a record that a person should hear of, else None."""
    event = record.event
    text = " ".join(worded(event)) if isinstance(event, Order) else _event(record, state)
    return None if text is None else one_line(text)


def _event(record: Record, state: State) -> str | None:
    match record.event:
        case CandidateAccepted() as event:
            node = state.tree.nodes[event.candidate]
            speedup = state.tree.speedup(event.candidate)
            return (
                f"{node.kernel}: accepted c{event.candidate} ({node.form}), "
                f"{times(event.effect)}x ({times(event.high)}..{times(event.low)}) "
                f"over c{event.incumbent}; now {speedup:.2f}x"
            )
        case KernelFinished() as event:
            return f"{event.kernel}: finished at {event.speedup:.2f}x with c{event.best}"
        case SearchClosed(reason=reason):
            return f"the search closes: {reason}"
        case HarnessChecked(passed=False) as event:
            return f"{event.kernel}: control {event.control} FAILED: {event.reason}"
        case CandidateWithdrawn(candidate=candidate, incumbent=best, reason=reason):
            again = "" if best is None else f"; c{best} is the best version again"
            return f"{state.tree.nodes[candidate].kernel}: c{candidate} is {reason}{again}"
        case _:
            return _mishap(record)


def _mishap(record: Record) -> str | None:
    match record.event:
        case RunResumed():
            return "resumed"
        case RunInterrupted(reason=reason):
            return reason
        case TurnFailed(turn=turn, reason=reason):
            return f"no reply to turn {turn}: {reason}"
        case LogRepaired(n_bytes=n_bytes):
            return f"{n_bytes} bytes that a crash cut off were removed from the log's end"
        case RequestLost(reason=reason):
            return f"work is issued again: {reason}"
        case WorkAbandoned(work=work, reason=reason):
            return f"{work} is given up: {reason}"
        case RunFinished(geomean=None, reason=reason):
            return reason
        case _:
            return None


def heartbeat(state: State) -> str:
    """One line on where the whole run is."""
    speedups = [f"{row.kernel} {row.speedup:.2f}x" for row in rows(state)]
    return ", ".join([usage(state), *speedups, job(state)])


def times(effect: float) -> str:
    """The speed-up that an effect in log-percent is; out of all proportion means unknown."""
    ratio = exp(-effect / 100)
    if ratio < 1 / UNKNOWN:
        return "0"
    return f"{ratio:.3f}" if ratio < UNKNOWN else "inf"


def hms(seconds: float) -> str:
    """Seconds as hours, minutes, seconds."""
    minutes, s = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{s:02d}"


def job(state: State) -> str:
    """What the device does now."""
    running = state.ledger.running
    if state.paused and not state.pending:
        return "paused by the operator"
    if running is None:
        screened = (r for r in state.pending.values() if isinstance(r, ScreeningRequested))
        busy = [f"c{request.candidate}" for request in screened]
        return f"building and checking {', '.join(busy)}" if busy else "device idle"
    return (
        f"job {running.job}: {running.purpose} c{running.candidate} vs c{running.incumbent} "
        f"of {running.kernel}"
    )


def usage(state: State, since_s: float = 0.0) -> str:
    """Candidates, device share, and everything with a budget; ``since_s`` after the last record."""
    campaign = state.begun.campaign
    wall, spent = state.spending.wall_s + since_s, state.spending.settled
    busy = spent.device_s / wall if wall > 0 else 0.0
    parts = [
        f"{state.tree.n_search}/{campaign.search.max_candidates} candidates",
        f"device busy {min(busy, 1.0):.0%}",
    ]
    for name, amount in {"wall_s": wall, **asdict(spent)}.items():
        limit = getattr(state.spending.limits, name)
        if limit is not None:
            places = 2 if name == "cost_usd" else 0
            parts.append(f"{name} {amount:.{places}f}/{limit:.{places}f}")
    if device := stand_in(state.toolchain):
        parts.append(f"readings: {device}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """Where one kernel is."""

    kernel: str
    best: int | None
    speedup: float
    time_over_bound: float | None
    proposed: int
    refused: int
    measured: int
    accepted: int


def rows(state: State) -> list[Row]:
    """Where each kernel is, in the order of the campaign."""
    return [_row(state, kernel) for kernel in state.tree.branches]


def _row(state: State, kernel: str) -> Row:
    # `ledger.of` would change the state, and with it the digest.
    branch, ledger = state.tree.branches[kernel], state.ledger.kernels.get(kernel)
    nodes = [node for c in branch.nodes if (node := state.tree.nodes[c]).is_search]
    best = branch.incumbent
    return Row(
        kernel=kernel,
        best=best,
        speedup=state.tree.speedup(best) if best is not None else 1.0,
        time_over_bound=ledger.time_over_bound if ledger and ledger.bound_of == best else None,
        proposed=len(nodes),
        refused=sum(node.status is Status.REFUSED for node in nodes),
        measured=sum(_is_measured(node) for node in nodes),
        accepted=len(branch.accepts),
    )


def _is_measured(node: Node) -> bool:
    return bool(node.pairs or node.n_pairs)


def _panel(state: State, since_s: float) -> Group:
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    for heading in ("speed-up", "/bound", "tried", "refused", "measured", "accepted"):
        table.add_column(heading, justify="right")
    for row in rows(state):
        bound = "-" if row.time_over_bound is None else f"{row.time_over_bound:.2f}"
        counts = (row.proposed, row.refused, row.measured, row.accepted)
        table.add_row(row.kernel, f"{row.speedup:.2f}x", bound, *map(str, counts))
    elapsed = hms(state.spending.wall_s + since_s)
    return Group(table, Text(f"{elapsed}  {usage(state, since_s)}"), Text(job(state)))
