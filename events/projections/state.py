"""The whole state of a run: a fold over its log, and nothing else is state."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from pydantic_core import to_json

from events.errors import FoldError
from events.projections.desk import Desk
from events.projections.knowledge import Knowledge
from events.projections.ledger import DeviceLedger
from events.projections.spending import Spending
from events.projections.tree import DesignTree
from events.vocabulary import (
    LearningRequested,
    MeasurementRequested,
    RebaseRequested,
    Record,
    Reply,
    Request,
    RequestLost,
    RunFinished,
    RunInterrupted,
    RunResumed,
    RunStarted,
    ScreeningRequested,
    SearchClosed,
    StateDigested,
    TurnAssigned,
    WorkAbandoned,
)

REQUESTS = get_args(Request)
REPLIES = get_args(Reply)


@dataclass
class State:
    """Everything that a decision may look at."""

    seq: int = -1
    """Last record taken in."""
    start: RunStarted | None = None
    toolchain: dict[str, str] = field(default_factory=dict)
    tree: DesignTree = field(default_factory=DesignTree)
    ledger: DeviceLedger = field(default_factory=DeviceLedger)
    desk: Desk = field(default_factory=Desk)
    knowledge: Knowledge = field(default_factory=Knowledge)
    spending: Spending = field(default_factory=Spending)
    pending: dict[int, Request] = field(default_factory=dict)
    """Requests without a reply, by sequence number."""
    lost: dict[int, Request] = field(default_factory=dict)
    """Requests whose loss waits for a decision."""
    losses: dict[str, int] = field(default_factory=dict)
    """How often the same work was lost, by `work_id`."""
    resumed: int = -1
    """Record of the last resumption."""
    closed: SearchClosed | None = None
    finished: RunFinished | None = None
    interrupted: bool = False
    digested: int = 0
    """Record of the last digest."""

    @property
    def begun(self) -> RunStarted:
        """The run's first event."""
        if self.start is None:
            raise LookupError("the log has no first event yet")
        return self.start

    def apply(self, record: Record) -> None:
        """Take in one record. No I/O, no clock, no randomness: replay must agree with the run.

        Raises:
            FoldError: the record contradicts those before it.
        """
        try:
            self._apply(record)
        except (LookupError, StopIteration, ValueError) as error:
            raise FoldError(record.seq, record.event.kind, str(error)) from error

    def _apply(self, record: Record) -> None:
        event = record.event
        if isinstance(event, REPLIES) and record.because:
            request = self.pending.pop(record.because[0], None)
            if isinstance(event, RequestLost) and request is not None:
                self._lose(record.because[0], request, event)
        if isinstance(event, REQUESTS):
            self.pending[record.seq] = event
        if isinstance(event, (*REQUESTS, WorkAbandoned)):
            for seq in record.because:
                self.lost.pop(seq, None)
        self.tree.apply(record)
        self.ledger.apply(record, self.tree)
        self.desk.apply(record)
        self.knowledge.apply(record, self.tree)
        self.spending.apply(record)
        self._mark(record)
        self.seq = record.seq

    def _lose(self, seq: int, request: Request, event: RequestLost) -> None:
        self.lost[seq] = request
        if event.by == "mailbox":
            self.losses[work_id(request)] = self.losses.get(work_id(request), 0) + 1

    def _mark(self, record: Record) -> None:
        match record.event:
            case RunStarted() as event:
                self.start, self.toolchain = event, event.toolchain
            case RunResumed(toolchain=toolchain):
                if toolchain != self.toolchain:
                    self.knowledge.forget_rules()
                self.toolchain, self.resumed, self.interrupted = toolchain, record.seq, False
            case RunInterrupted():
                self.interrupted = True
            case SearchClosed() as event:
                self.closed = event
            case RunFinished() as event:
                self.finished = event
            case StateDigested():
                self.digested = record.seq
            case _:
                pass

    def digest(self) -> str:
        """SHA-256 over all of it, the same in every process that folded the same log."""
        return hashlib.sha256(to_json(self)).hexdigest()


def work_id(request: Request) -> str:
    """Name of the work that a request is about: a request issued again has the same."""
    match request:
        case TurnAssigned(turn=turn):
            return f"turn {turn}"
        case RebaseRequested(candidate=candidate):
            return f"rebase c{candidate}"
        case ScreeningRequested(candidate=candidate):
            return f"screening c{candidate}"
        case MeasurementRequested(job=job):
            return f"job {job}"
        case LearningRequested(kernel=kernel, topic=topic, signature=signature):
            return f"learning {kernel} {topic} {signature}".rstrip()


def replay(records: Iterable[Record]) -> State:
    """Fold a log."""
    state = State()
    for record in records:
        state.apply(record)
    return state
