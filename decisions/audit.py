"""Re-derive a run from its log: decisions from the state before them, readings from their blobs.

The same functions that decided live are asked again; what they answer must be what is recorded.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from decisions import replies, samples
from decisions.plan import decide
from events.blob_names import blobs_of
from events.errors import BlobMissingError, FoldError
from events.projections.state import State, work_id
from events.vocabulary import (
    Analysis,
    AnyEvent,
    BlobsPruned,
    BoundMeasured,
    CandidateExamined,
    Complaint,
    Draft,
    EditsReapplied,
    JobFailed,
    LearningRequested,
    LogRepaired,
    MeasurementRequested,
    Nothing,
    Outcome,
    PairsMeasured,
    RebaseRequested,
    Record,
    Reply,
    RequestLost,
    Review,
    RoleReplied,
    RunInterrupted,
    RunResumed,
    RunStarted,
    ScreeningRequested,
    Sha,
    TurnAssigned,
    TurnFailed,
)

ReadBlob = Callable[[Sha], bytes]
"""Reads a blob and checks its hash; raises an exception that says which blob and why."""


@dataclass(frozen=True)
class Finding:
    """Something in the log that its evidence does not support."""

    seq: int
    kind: str
    problem: str
    sort: Literal["unsupported", "pruned"] = "unsupported"
    """Pruned: evidence was removed on purpose, so that nobody can say whether it supports this."""

    def __str__(self) -> str:
        return f"record {self.seq} ({self.kind}): {self.problem}"


def audit(
    records: Iterable[Record], blob: ReadBlob, unreadable: type[Exception]
) -> Iterator[Finding]:
    """Check a log from its first record on.

    Args:
        records: of one run, in order; the reader has checked their hash chain.
        blob: see `ReadBlob`.
        unreadable: what ``blob`` raises for a missing or changed blob.

    Yields:
        One finding per problem. Checking goes on after one, with the state that the log gives, up
        to a record that contradicts those before it.
    """
    state = State()
    token = 0  # of the last job since the run was last taken over
    for record in records:
        event = record.event
        problems, unread = _checked(state, record, blob, unreadable)
        if isinstance(event, RunResumed):
            token = 0
        if isinstance(event, PairsMeasured | BoundMeasured):
            if event.token <= token:
                problems.append(f"lease token {event.token} is not newer than {token}")
            token = event.token
        yield from (Finding(record.seq, event.kind, problem) for problem in problems)
        yield from dict.fromkeys(_gap(record, error) for error in unread)
        try:
            state.apply(record)
        except FoldError as error:
            yield Finding(record.seq, event.kind, f"{error}; nothing after it can be audited")
            return


def _checked(
    state: State, record: Record, blob: ReadBlob, unreadable: type[Exception]
) -> tuple[list[str], list[Exception]]:
    """Return what is wrong with a record, and why blobs that it rests on could not be read."""
    problems = [*_framed(state, record)]
    unread: dict[str, Exception] = {}
    for sha in blobs_of(record.event):
        try:
            blob(sha)
        except unreadable as error:
            unread[str(error)] = error
    try:
        problems += _evidence(state, record, blob)
    except unreadable as error:
        unread[str(error)] = error
    except LookupError as error:
        problems.append(f"names what the records before it do not have: {error}")
    return problems, list(unread.values())


def _gap(record: Record, error: Exception) -> Finding:
    if isinstance(error, BlobMissingError) and error.pruned_by is not None:
        by = f"evidence was pruned by record {error.pruned_by}, not re-derivable"
        return Finding(record.seq, record.event.kind, by, "pruned")
    return Finding(record.seq, record.event.kind, str(error))


def _framed(state: State, record: Record) -> list[str]:
    try:
        return list(_frame(state, record))
    except (LookupError, ValueError, ArithmeticError) as error:
        return [f"no decision can follow from the records before it: {error}"]


def _frame(state: State, record: Record) -> Iterator[str]:
    """Check that the record may stand here at all."""
    event = record.event
    match event:
        case RunStarted():
            if state.start is not None:
                yield "a second first event"
        case RunResumed() | LogRepaired() | BlobsPruned():
            pass
        case RequestLost(by="resume"):
            yield from _answers(state, record)
            if state.resumed < 0:
                yield "lost by a resumption, but the run was never resumed"
        case RunInterrupted():
            yield from _nothing_due(state)
        case _ if isinstance(event, Reply):
            yield from _nothing_due(state)
            yield from _answers(state, record)
        case _:
            yield from _decided(state, record)


def _decided(state: State, record: Record) -> Iterator[str]:
    due = decide(state)
    if due is None:
        yield "nothing was due here"
    elif due.event != record.event:
        yield f"the evidence supports something else: {_difference(record.event, due.event)}"
    elif due.because != record.because:
        yield f"rests on records {due.because}, not on {record.because}"


def _difference(recorded: AnyEvent, derived: AnyEvent) -> str:
    if recorded.kind != derived.kind:
        return f"{derived.kind}"
    theirs, ours = recorded.model_dump(), derived.model_dump()
    differing = [name for name in ours if ours[name] != theirs[name]]
    return ", ".join(f"{n} = {ours[n]!r}, recorded {theirs[n]!r}" for n in differing)[:600]


def _nothing_due(state: State) -> Iterator[str]:
    if (due := decide(state)) is not None:
        yield f"a decision is missing before it: {due.event.kind}"


def _answers(state: State, record: Record) -> Iterator[str]:
    """Check that a reply answers a request that waits for it."""
    request = state.pending.get(record.because[0]) if record.because else None
    if request is None:
        yield "answers no request that is waiting"
        return
    match record.event:
        case RequestLost():
            fits = True
        case RoleReplied(turn=turn) | TurnFailed(turn=turn):
            fits = isinstance(request, TurnAssigned) and request.turn == turn
        case CandidateExamined(candidate=candidate):
            fits = isinstance(request, ScreeningRequested) and request.candidate == candidate
        case PairsMeasured(job=job) | BoundMeasured(job=job) | JobFailed(job=job):
            fits = isinstance(request, MeasurementRequested) and request.job == job
        case EditsReapplied(candidate=candidate):
            fits = isinstance(request, RebaseRequested) and request.candidate == candidate
        case _:
            fits = isinstance(request, LearningRequested)
    if not fits:
        yield f"does not answer {work_id(request)}"


def _evidence(state: State, record: Record, blob: ReadBlob) -> list[str]:
    """Check a reply against its own blobs and its request."""
    request = state.pending.get(record.because[0]) if record.because else None
    match record.event:
        case PairsMeasured() as event if isinstance(request, MeasurementRequested):
            return _readable(_pairs(event, request, blob))
        case BoundMeasured() as event:
            return _readable(_bounds(event, blob))
        case RoleReplied() as event if isinstance(request, TurnAssigned):
            parent = state.tree.nodes[request.parent].source
            return list(_reply(event, request, blob(parent).decode("utf-8", "replace"), blob))
        case EditsReapplied() as event if isinstance(request, RebaseRequested):
            return list(_rebased(event, request, blob))
        case _:
            return []


def _rebased(event: EditsReapplied, request: RebaseRequested, blob: ReadBlob) -> Iterator[str]:
    reply, onto = (blob(s).decode("utf-8", "replace") for s in (request.reply, request.onto_source))
    parsed = replies.parse("step", reply, onto)
    if isinstance(parsed, replies.SourceText) != isinstance(event.outcome, Draft):
        yield "the edits fit their new parent otherwise than recorded"
    elif isinstance(event.outcome, Draft) and not _says(parsed, event.outcome):
        yield "the edits give another draft than the recorded one"


def _readable(problems: Iterator[str]) -> list[str]:
    """Let samples that cannot be read, or that give no times, be a problem as well."""
    try:
        return list(problems)
    except ValueError as error:
        return [f"the raw samples cannot be used: {error}"]


def _pairs(event: PairsMeasured, request: MeasurementRequested, blob: ReadBlob) -> Iterator[str]:
    runs = samples.decode(blob(event.samples))
    if tuple(run.arm for run in runs) != samples.schedule(request.coins):
        yield "the arms did not run in the order of the coins"
    elif samples.pairs(runs) != event.pairs:
        yield "the pairs are not the medians of the raw samples"
    if max(event.incumbent_margin, event.candidate_margin) > 1.0:
        yield "an arm was outside of the tolerance, and the pairs were kept"


def _bounds(event: BoundMeasured, blob: ReadBlob) -> Iterator[str]:
    runs = samples.decode(blob(event.samples))
    derived = samples.medians(runs, 1 + len(event.bounds_s))
    if derived != (event.incumbent_s, *event.bounds_s.values()):
        yield "the times are not the medians of the raw samples"


def _reply(event: RoleReplied, request: TurnAssigned, parent: str, blob: ReadBlob) -> Iterator[str]:
    """Read the reply again: it must be read as what is recorded."""
    text = blob(event.reply).decode("utf-8", "replace")
    if not _says(replies.parse(request.task, text, parent), event.outcome):
        yield "the reply does not say what it was read as"


def _says(parsed: replies.Parsed, recorded: Outcome) -> bool:
    """Whether ``recorded`` is all that was read, but for the target's normal form of a source."""
    match parsed:
        case replies.PlanText():
            return recorded == parsed.design_plan()
        case replies.SourceText():
            return isinstance(recorded, Draft) and recorded == parsed.draft(recorded.normalized)
        case Analysis() | Review() | Complaint() | Nothing():
            return recorded == parsed
