"""The one loop and the one writer: receive, append, fold, decide, send."""

from collections.abc import Callable, Iterable, Sequence

import structlog

from actors.commands import command
from actors.mailboxes import Delivery, Mailbox
from actors.messages import Command
from decisions.address import DIRECTOR, OPERATOR
from decisions.orders import refusal
from decisions.plan import decide
from events.blobs import Blobs
from events.log import Entry, EventLog
from events.projections.state import State
from events.vocabulary import (
    AnyEvent,
    MeasurementRequested,
    Order,
    Record,
    Reply,
    Request,
    RequestLost,
    RunInterrupted,
    RunResumed,
    RunStarted,
)

POLL_S = 0.2
Orders = Callable[[], Iterable[Order | RunInterrupted]]
"""Iterates over the operator's orders that wait, oldest first. One is over, and need not be told
again, when the next one is asked for: by then it is durable or was refused."""

_log = structlog.get_logger()


class Director:
    """Drives a run from its log.

    It knows neither Ray nor a target. All that it remembers is the state folded from the log, so
    a new director on the same log goes on where the last one stopped.
    """

    def __init__(
        self,
        log: EventLog,
        blobs: Blobs,
        mailbox: Mailbox,
        *,
        watch: Callable[[Record, State], None] = lambda record, state: None,
        orders: Orders = lambda: (),
    ) -> None:
        self._log, self._blobs, self._mailbox = log, blobs, mailbox
        self._watch, self._orders = watch, orders
        self._outbox: list[Command] = []
        self._places: dict[int, int] = {}
        self.state = State()

    def start(self, first: RunStarted) -> None:
        """Begin a run: append its first event and decide what follows."""
        self._append(first)
        self._decide()

    def resume(self, records: Sequence[Record], mark: RunResumed) -> None:
        """Fold a log, mark the take-over, and issue again what has no reply.

        A device job that was running is lost: its result, if there was one, was never recorded.
        Everything else is sent again as it was, from the state that it was first decided in.
        """
        answered = {r.because[0] for r in records if isinstance(r.event, Reply) and r.because}
        for record in records:
            self.state.apply(record)
            self._place(record)
            if isinstance(record.event, Request) and record.seq not in answered:
                self._post(record)
        self._append(mark)
        for seq, request in list(self.state.pending.items()):
            if isinstance(request, MeasurementRequested):
                self._outbox = [c for c in self._outbox if c.seq != seq]
                lost = RequestLost(by="resume", reason="the run stopped while the job was running")
                self._append(lost, because=(seq,))
        self._decide()

    def run(self, stop: Callable[[], bool] = lambda: False, poll_s: float = POLL_S) -> State:
        """Go on until the run is finished, or an order or ``stop`` ends it at a safe point.

        While no answer comes, both are asked for every ``poll_s``.
        """
        while not self.state.finished:
            self._obey()
            if self.state.interrupted:
                return self.state
            if stop():
                self._append(RunInterrupted(reason="stopped by the operator"))
                return self.state
            self._send()
            delivery = self._mailbox.receive(poll_s)
            if delivery is not None:
                self._take(delivery)
        return self.state

    def _obey(self) -> None:
        """Record what the operator has ordered since the last look, and decide what follows."""
        for order in self._orders():
            if self.state.interrupted:
                return
            if (why := refusal(self.state, order)) is not None:
                _log.warning("order refused", order=order.order, kind=order.kind, why=why)
                continue
            self._append(order, actor=OPERATOR)
            self._decide()

    def _take(self, delivery: Delivery) -> None:
        if delivery.seq not in self.state.pending:
            return  # answered twice: the first answer is on record
        self._blobs.put_all(delivery.answer.blobs)
        self._append(delivery.answer.event, because=(delivery.seq,), actor=delivery.actor)
        self._decide()

    def _decide(self) -> None:
        while (due := decide(self.state)) is not None:
            self._append(due.event, because=due.because)

    def _append(
        self, event: AnyEvent, because: tuple[int, ...] = (), actor: str = DIRECTOR
    ) -> None:
        for record in self._log.append([Entry(event, actor, because)]):
            self.state.apply(record)
            self._place(record)
            if isinstance(record.event, Request):
                self._post(record)
            self._watch(record, self.state)

    def _place(self, record: Record) -> None:
        """Note whose place a request has: that of the lost request that it issues again."""
        if isinstance(record.event, Request):
            first = record.because[0] if record.because else record.seq
            self._places[record.seq] = self._places.get(first, record.seq)

    def _post(self, record: Record) -> None:
        """Word the command now, while the state is the one that the request was decided in."""
        if isinstance(record.event, Request):
            place = self._places[record.seq]
            self._outbox.append(command(self.state, record.seq, place, record.event, self._blobs))

    def _send(self) -> None:
        """Send what was decided; by now everything before it is durable."""
        for waiting in self._outbox:
            self._mailbox.send(waiting)
        self._outbox.clear()
