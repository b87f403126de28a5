"""The whole state of a run: a fold over its log, and nothing else is state."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, get_args

from pydantic_core import to_json

from events.errors import FoldError
from events.projections.desk import Desk
from events.projections.knowledge import Knowledge
from events.projections.ledger import DeviceLedger
from events.projections.reading import Reading
from events.projections.returns import Returns
from events.projections.spending import Spending, changed
from events.projections.tree import DesignTree, Status
from events.toolchain import toolchain_digest
from events.vocabulary import (
    AnyEvent,
    BlobsPruned,
    BudgetChanged,
    CandidateAccepted,
    CandidateExamined,
    CandidateProposed,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    CandidateVetoed,
    CandidateWithdrawn,
    Decision,
    EditsReapplied,
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactProposed,
    HarnessChecked,
    JobFailed,
    KernelFinished,
    LearningRequested,
    LogRepaired,
    Mark,
    MeasurementRequested,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    OrderId,
    PairsMeasured,
    ProgramsMeasured,
    RebaseRequested,
    Record,
    Reply,
    Request,
    RequestLost,
    RoleReplied,
    RunFinished,
    RunInterrupted,
    RunResumed,
    RunStarted,
    ScreeningRequested,
    SearchClosed,
    StateDigested,
    ToolchainChanged,
    TurnAssigned,
    TurnDropped,
    TurnFailed,
    WorkAbandoned,
)

AFTER_PAUSE = frozenset((RunResumed, LogRepaired, BlobsPruned))
"""Marks that follow on a time when no process drove the run."""
SUMMED: Any = {
    "tree": {
        "nodes": True, "changed": True, "total": True,
        "branches": {"__all__": {"nodes": True, "by_normalized": True}},
    },
    "knowledge": {"facts": True, "records": True, "chain": True, "n_chained": True},
}  # fmt: skip
"""What the digests of the tree and of the knowledge stand for: all that grows with the run."""


@dataclass(slots=True)
class State:
    """Everything that a decision may look at."""

    seq: int = -1
    """Last record taken in."""
    start: RunStarted | None = None
    toolchain: dict[str, str] = field(default_factory=dict)
    """Fingerprint under which work is done now."""
    toolchain_digest: str = ""
    """Of that fingerprint; evidence with another one is void."""
    toolchain_seq: int = -1
    """Record that named it first."""
    tree: DesignTree = field(default_factory=DesignTree)
    ledger: DeviceLedger = field(default_factory=DeviceLedger)
    desk: Desk = field(default_factory=Desk)
    knowledge: Knowledge = field(default_factory=Knowledge)
    reading: Reading = field(default_factory=Reading)
    spending: Spending = field(default_factory=Spending)
    returns: Returns = field(default_factory=Returns)
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
    paused: bool = False
    orders: dict[OrderId, None] = field(default_factory=dict)
    """Orders that the operator has given."""
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
        event = record.event
        kind = type(event)
        try:
            idle = self.paused and not self.pending
            self.spending.pass_time(record.time_ns, is_pause=idle or kind in AFTER_PAUSE)
            TAKES[kind](event, self, record)
        except KeyError as error:
            raise FoldError(record.seq, event.kind, f"they have no {error}") from error
        except (LookupError, ValueError) as error:
            raise FoldError(record.seq, event.kind, str(error)) from error
        self.seq = record.seq

    def digest(self) -> str:
        """SHA-256 over all of it, the same in every process that folded the same log."""
        rest = to_json(self, exclude=SUMMED)
        return hashlib.sha256(self.tree.digest() + self.knowledge.digest() + rest).hexdigest()

    def issue(self, request: Request, record: Record) -> None:
        """A request waits for its reply; if it follows on lost ones, these are decided about."""
        self.pending[record.seq] = request
        self.settle_losses(record)

    def answer(self, record: Record) -> int:
        """A request has its reply; return the request's number."""
        request = record.because[0]
        self.pending.pop(request, None)
        return request

    def lose(self, record: Record, *, is_spent: bool) -> Request | None:
        """A request's work is still to be done; return it, if nobody had answered it before."""
        seq = record.because[0]
        request = self.pending.pop(seq, None)
        self.spending.lose(seq, is_spent=is_spent)
        if request is not None:
            self.lost[seq] = request
        return request

    def work_under(self, toolchain: dict[str, str], seq: int) -> None:
        """From here on this is the toolchain; what another one built or measured does not count."""
        digest = toolchain_digest(toolchain)
        if digest == self.toolchain_digest:
            return
        if self.toolchain_digest:
            self.knowledge.outdate()
            self.tree.outdate()
            self.desk.outdate()
            self.ledger.outdate()
        self.toolchain, self.toolchain_digest, self.toolchain_seq = toolchain, digest, seq

    def settle_losses(self, record: Record) -> None:
        """The lost requests that a record follows from are decided about."""
        if self.lost:
            for seq in record.because:
                self.lost.pop(seq, None)


def replay(records: Iterable[Record]) -> State:
    """Fold a log."""
    state = State()
    for record in records:
        state.apply(record)
    return state


# ---- what happens on each kind of event ----------------------------------------------------


@singledispatch
def _take(event: AnyEvent, state: State, record: Record) -> None:
    """Take in an event; each kind has its own function below."""
    raise ValueError("nothing says what it does to the state")


@_take.register
def _run_started(event: RunStarted, state: State, record: Record) -> None:
    state.start = event
    state.work_under(event.toolchain, record.seq)
    state.knowledge.offers = list(event.offers)
    state.spending.limits = event.campaign.budget
    state.ledger.start(event.campaign.kernels)
    state.desk.start(event.campaign.kernels)


@_take.register
def _run_resumed(event: RunResumed, state: State, record: Record) -> None:
    state.work_under(event.toolchain, record.seq)
    state.resumed, state.interrupted = record.seq, False


@_take.register
def _run_interrupted(event: RunInterrupted, state: State, record: Record) -> None:
    state.interrupted = True
    if event.order is not None:
        state.orders[event.order] = None


@_take.register
def _bytes_changed(event: LogRepaired | BlobsPruned, state: State, record: Record) -> None:
    """What is on the disk is no part of the state."""


@_take.register
def _operator_paused(event: OperatorPaused, state: State, record: Record) -> None:
    state.orders[event.order] = None
    state.paused = True


@_take.register
def _operator_continued(event: OperatorContinued, state: State, record: Record) -> None:
    state.orders[event.order] = None
    state.paused = False


@_take.register
def _operator_hinted(event: OperatorHinted, state: State, record: Record) -> None:
    state.orders[event.order] = None
    state.desk.hint(event)


@_take.register
def _candidate_vetoed(event: CandidateVetoed, state: State, record: Record) -> None:
    state.orders[event.order] = None
    state.tree.vetoes[event.candidate] = (record.seq, f"vetoed by the operator: {event.reason}")


@_take.register
def _budget_changed(event: BudgetChanged, state: State, record: Record) -> None:
    state.orders[event.order] = None
    state.spending.limits = changed(state.spending.limits, event.changes)


@_take.register
def _turn_assigned(event: TurnAssigned, state: State, record: Record) -> None:
    state.issue(event, record)
    if event.task == "summarize":
        state.desk.count(event)
        state.reading.assign(event)
    else:
        state.desk.assign(event, record.seq)
    state.spending.reserved[record.seq] = event.reserved


@_take.register
def _role_replied(event: RoleReplied, state: State, record: Record) -> None:
    state.spending.settle(state.answer(record), event.spent)
    asked = state.reading if state.reading.is_about(event.turn) else state.desk
    turn = asked.reply(event, record.seq)
    state.returns.end(turn, event.spent)
    state.reading.note(event, turn, record.seq)


@_take.register
def _turn_failed(event: TurnFailed, state: State, record: Record) -> None:
    state.spending.settle(state.answer(record), event.spent)
    asked = state.reading if state.reading.is_about(event.turn) else state.desk
    state.returns.end(asked.fail(event, record.seq), event.spent)


@_take.register
def _turn_dropped(event: TurnDropped, state: State, record: Record) -> None:
    _drop_turn(state, event.turn, event.reason)


def _drop_turn(state: State, turn: int, reason: str) -> None:
    if state.reading.is_about(turn):
        state.reading.end()
    else:
        state.desk.drop(turn, reason)


@_take.register
def _candidate_proposed(event: CandidateProposed, state: State, record: Record) -> None:
    state.tree.propose(event, record.seq)
    state.desk.propose(event)
    state.knowledge.cite(event.cites)


@_take.register
def _rebase_requested(event: RebaseRequested, state: State, record: Record) -> None:
    state.issue(event, record)
    state.tree.request_rebase(event)


@_take.register
def _edits_reapplied(event: EditsReapplied, state: State, record: Record) -> None:
    state.answer(record)
    state.tree.rebase(event, record.seq)


@_take.register
def _screening_requested(event: ScreeningRequested, state: State, record: Record) -> None:
    state.issue(event, record)
    state.tree.screen(event.candidate)


@_take.register
def _candidate_examined(event: CandidateExamined, state: State, record: Record) -> None:
    state.answer(record)
    if event.toolchain != state.toolchain_digest:
        state.tree.screen_again(event.candidate)
        return
    node = state.tree.examine(event, record.seq)
    if event.signature is not None:
        state.knowledge.note_failure(event, node, record.seq)
    state.knowledge.note_breaks(event, node, record.seq)


@_take.register
def _candidate_screened(event: CandidateScreened, state: State, record: Record) -> None:
    examined = state.tree.nodes[event.candidate].examined
    state.tree.refuse_or_queue(event, record.seq)
    state.desk.screen(event, examined.diagnostics if examined else None, record.seq)


@_take.register
def _measurement_requested(event: MeasurementRequested, state: State, record: Record) -> None:
    state.issue(event, record)
    state.ledger.request(event, record.seq)
    state.spending.reserved[record.seq] = event.reserved
    if event.purpose in ("test", "canary"):
        state.tree.oppose(event)


@_take.register
def _pairs_measured(event: PairsMeasured, state: State, record: Record) -> None:
    state.spending.settle_device(state.answer(record), event.device_s)
    if event.toolchain != state.toolchain_digest:
        _void_job(state, event.device_s)
        return
    job = state.ledger.pairs(event, record.seq)
    last = event.pairs[-1]
    state.tree.time(job.incumbent, last.incumbent_s)
    state.tree.time(job.candidate, last.candidate_s)
    if job.purpose in ("test", "canary"):
        state.tree.compare(job.candidate, event, record.seq)


@_take.register
def _programs_measured(event: ProgramsMeasured, state: State, record: Record) -> None:
    state.spending.settle_device(state.answer(record), event.device_s)
    if event.toolchain != state.toolchain_digest:
        _void_job(state, event.device_s)
        return
    job = state.ledger.programs(event, record.seq)
    state.tree.time(job.incumbent, event.incumbent_s)


@_take.register
def _job_failed(event: JobFailed, state: State, record: Record) -> None:
    state.spending.settle_device(state.answer(record), event.device_s)
    _fail_job(state, event, record.seq)


def _fail_job(state: State, event: JobFailed, seq: int) -> None:
    job = state.ledger.running
    if job is not None and state.tree.nodes[job.candidate].artifact != job.candidate_artifact:
        _void_job(state, event.device_s)
        return
    job = state.ledger.fail(event.device_s)
    if job.purpose in ("test", "canary"):
        state.tree.fail(job.candidate, event, len(job.coins), seq)


def _void_job(state: State, device_s: float) -> None:
    """A job is over that ran what an earlier toolchain had built: it says nothing."""
    job = state.ledger.fail(device_s)
    if job.purpose in ("test", "canary"):
        state.tree.waste(job.candidate, len(job.coins))


@_take.register
def _request_lost(event: RequestLost, state: State, record: Record) -> None:
    with_actor = event.by == "mailbox"
    request = state.lose(record, is_spent=with_actor)
    if request is not None and with_actor:
        work = work_id(request)
        state.losses[work] = state.losses.get(work, 0) + 1
        if isinstance(request, TurnAssigned):
            state.returns.end(request, request.reserved)


@_take.register
def _toolchain_changed(event: ToolchainChanged, state: State, record: Record) -> None:
    state.lose(record, is_spent=False)
    state.work_under(event.toolchain, record.seq)


@_take.register
def _work_abandoned(event: WorkAbandoned, state: State, record: Record) -> None:
    state.settle_losses(record)
    if event.candidate is not None:
        state.tree.close(event.candidate, Status.REFUSED, event.reason, record.seq)
        state.desk.forget(event.candidate)
    if event.turn is not None:
        _drop_turn(state, event.turn, event.reason)
    if event.job is not None:
        failed = JobFailed(job=event.job, arm="device", reason=event.reason, device_s=0.0)
        _fail_job(state, failed, record.seq)


@_take.register
def _candidate_accepted(event: CandidateAccepted, state: State, record: Record) -> None:
    node = state.tree.accept(event, record.seq)
    state.desk.replace(node.kernel, event.incumbent)
    state.returns.credit(node.models, -event.effect)


@_take.register
def _candidate_rejected(event: CandidateRejected, state: State, record: Record) -> None:
    state.tree.reject(event, record.seq)


@_take.register
def _candidate_shelved(event: CandidateShelved, state: State, record: Record) -> None:
    state.tree.shelve(event, record.seq)


@_take.register
def _candidate_withdrawn(event: CandidateWithdrawn, state: State, record: Record) -> None:
    node = state.tree.nodes[event.candidate]
    if node.status is Status.ACCEPTED:
        state.returns.credit(node.models, node.effect or 0.0)
    state.tree.withdraw(event, record.seq)
    state.desk.forget(event.candidate)
    if event.incumbent is not None:
        state.desk.replace(node.kernel, event.candidate)
        state.ledger.of(node.kernel).drop_final()


@_take.register
def _harness_checked(event: HarnessChecked, state: State, record: Record) -> None:
    state.tree.control(event, record.seq)
    state.ledger.control(event)


@_take.register
def _learning_requested(event: LearningRequested, state: State, record: Record) -> None:
    state.issue(event, record)
    state.knowledge.ask(event)


@_take.register
def _fact_learned(event: FactLearned, state: State, record: Record) -> None:
    state.answer(record)
    state.knowledge.learn(event, record.seq, is_current=event.toolchain == state.toolchain_digest)


@_take.register
def _fact_proposed(event: FactProposed, state: State, record: Record) -> None:
    state.knowledge.propose(event, record.seq)
    state.reading.propose(event, record.because)


@_take.register
def _fact_check_requested(event: FactCheckRequested, state: State, record: Record) -> None:
    state.issue(event, record)
    state.knowledge.request_check(event)


@_take.register
def _fact_checked(event: FactChecked, state: State, record: Record) -> None:
    state.answer(record)
    state.knowledge.check(event, record.seq, is_current=event.toolchain == state.toolchain_digest)


@_take.register
def _fact_judged(event: FactJudged, state: State, record: Record) -> None:
    state.knowledge.judge(event)


@_take.register
def _state_digested(event: StateDigested, state: State, record: Record) -> None:
    state.digested = record.seq


@_take.register
def _kernel_finished(event: KernelFinished, state: State, record: Record) -> None:
    state.tree.branches[event.kernel].finished = event


@_take.register
def _search_closed(event: SearchClosed, state: State, record: Record) -> None:
    state.closed = event


@_take.register
def _run_finished(event: RunFinished, state: State, record: Record) -> None:
    state.finished = event


TAKES: Mapping[type, Callable[[Any, State, Record], None]] = {
    kind: _take.dispatch(kind) for kind in get_args(Mark | Order | Request | Reply | Decision)
}
"""The same by kind: looked up for every record, and faster than calling `_take`."""


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
        case LearningRequested(kernel=kernel, topic=topic, signature=signature) as asked:
            return f"learning {kernel} {topic} {signature}{asked.microbenchmark}".rstrip()
        case FactCheckRequested(fact=fact):
            return f"check f{fact}"
