"""Whether a record may stand where it does: what holds under every version of the rules."""

from collections.abc import Iterator

from decisions.address import DIRECTOR, OPERATOR, address
from events.projections.state import State, work_id
from events.vocabulary import (
    AnyEvent,
    BlobsPruned,
    CandidateExamined,
    EditsReapplied,
    FactChecked,
    FactCheckRequested,
    FactLearned,
    JobFailed,
    LearningRequested,
    LogRepaired,
    MeasurementRequested,
    Order,
    PairsMeasured,
    ProgramsMeasured,
    RebaseRequested,
    Record,
    Reply,
    Request,
    RequestLost,
    RoleReplied,
    RunInterrupted,
    RunResumed,
    RunStarted,
    ScreeningRequested,
    Spend,
    ToolchainChanged,
    TurnAssigned,
    TurnFailed,
)

OPERATED = (LogRepaired, BlobsPruned)
"""Marks that an operator's command may write, whatever the run is at."""
MARKS = (RunStarted, RunResumed, RunInterrupted, *OPERATED)


def misplaced(state: State, record: Record) -> Iterator[str]:
    """Say why a record cannot stand here.

    Args:
        state: before the record.
        record: any.
    """
    event = record.event
    if isinstance(event, Reply):
        yield from _reply(state, record)
    elif record.actor not in _writers(event):
        yield f"it is not for {record.actor} to write"
    if isinstance(event, RunStarted) != (state.start is None) and not isinstance(event, OPERATED):
        yield "a run has one first event, before all others"
    if record.because and isinstance(event, (*MARKS, Order)):
        yield "a mark or an order answers nothing"
    if isinstance(event, MeasurementRequested | TurnAssigned):
        yield from _overdrawn(state, record, event.reserved)
    if state.finished and not isinstance(event, OPERATED):
        yield "the run had finished"
    if state.interrupted and not isinstance(event, (RunResumed, *OPERATED)):
        yield "the run had stopped and was not resumed"
    yield from _forgotten(state, record)


def _writers(event: AnyEvent) -> tuple[str, ...]:
    """Who may write an event that is no reply."""
    if isinstance(event, OPERATED):
        return (DIRECTOR, OPERATOR)
    is_order = isinstance(event, Order) or (isinstance(event, RunInterrupted) and event.order)
    return (OPERATOR,) if is_order else (DIRECTOR,)


def _forgotten(state: State, record: Record) -> Iterator[str]:
    """A resumption marks the device job that was running as lost before anything else."""
    event = record.event
    if state.seq != state.resumed or isinstance(event, (RunResumed, *OPERATED)):
        return
    lost = isinstance(event, RequestLost) and event.by == "resume"
    if not lost and any(isinstance(r, MeasurementRequested) for r in state.pending.values()):
        yield "the device job that ran when the run stopped was not marked as lost"


def _reply(state: State, record: Record) -> Iterator[str]:
    request = state.pending.get(record.because[0]) if record.because else None
    if request is None:
        yield "answers no request that is waiting"
        return
    if record.because[1:]:
        yield "a reply answers one request"
    event = record.event
    if isinstance(event, RequestLost) and event.by == "resume":
        if state.seq != state.resumed or not isinstance(request, MeasurementRequested):
            yield "lost by a resumption that did not lose it"
        writer = DIRECTOR
    else:
        writer = address(request)
    if record.actor != writer:
        yield f"{writer} was asked, not {record.actor}"
    if not _fits(record, request):
        yield f"does not answer {work_id(request)}"
    yield from _figures(state, record)


def _fits(record: Record, request: Request) -> bool:
    match record.event:
        case RequestLost():
            return True
        case ToolchainChanged():
            return address(request) in ("screening", "device", "keeper")
        case RoleReplied(turn=turn) | TurnFailed(turn=turn):
            return isinstance(request, TurnAssigned) and request.turn == turn
        case CandidateExamined(candidate=candidate):
            return isinstance(request, ScreeningRequested) and request.candidate == candidate
        case ProgramsMeasured(job=job):
            return _is_job(request, job, of_programs=(True,))
        case PairsMeasured(job=job):
            return _is_job(request, job, of_programs=(False,))
        case JobFailed(job=job):
            return _is_job(request, job, of_programs=(True, False))
        case EditsReapplied(candidate=candidate):
            return isinstance(request, RebaseRequested) and request.candidate == candidate
        case FactChecked(fact=fact):
            return isinstance(request, FactCheckRequested) and request.fact == fact
        case _:
            return isinstance(request, LearningRequested)


def _is_job(request: Request, job: int, *, of_programs: tuple[bool, ...]) -> bool:
    return (
        isinstance(request, MeasurementRequested)
        and request.job == job
        and (request.purpose in ("bound", "probe")) in of_programs
    )


def _figures(state: State, record: Record) -> Iterator[str]:
    """Nothing that was spent is negative; work has the toolchain under which it was asked for."""
    event = record.event
    spent: tuple[float, ...] = ()
    if isinstance(event, RoleReplied | TurnFailed):
        spent = tuple(event.spent.model_dump().values())
    elif isinstance(event, PairsMeasured | ProgramsMeasured | JobFailed):
        spent = (event.device_s,)
    if any(amount < 0 for amount in spent):
        yield "less than nothing was spent"
    match event:
        case (
            CandidateExamined(toolchain=named)
            | PairsMeasured(toolchain=named)
            | ProgramsMeasured(toolchain=named)
            | FactLearned(toolchain=named)
            | FactChecked(toolchain=named)
        ) if named != state.toolchain_digest and record.because[0] > state.toolchain_seq:
            yield "its toolchain is not the one that the run records"
        case _:
            pass


def _overdrawn(state: State, record: Record, reserved: Spend) -> Iterator[str]:
    """What is settled and reserved stays within the limits.

    Work that was lost and is issued again keeps its place, and the final pairs are taken from what
    the closing of the search has kept for them.
    """
    if state.start is None or state.closed or any(seq in state.lost for seq in record.because):
        return
    budget, committed = state.spending.limits, state.spending.committed
    for name, amount in reserved.model_dump().items():
        limit, before = getattr(budget, name), getattr(committed, name)
        if limit is not None and amount and before + amount > limit:
            yield f"{name} is overdrawn: {before:g} and {amount:g} are more than {limit:g}"
