"""Re-derive a run from its log: decisions from the state before them, readings from their blobs.

The same functions that decided live are asked again, in the version that the run records; what
they answer must be what is recorded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from decisions.evidence import Evidence, ReadBlob, Reading
from decisions.plan import Rule, decide
from decisions.policy import DECIDED, FORMER, Policy, policy
from decisions.standing import misplaced
from events.blob_names import blobs_of, named_by
from events.errors import BlobMissingError, FoldError
from events.projections.state import State
from events.pruned import unlisted
from events.vocabulary import (
    AnyEvent,
    BlobKind,
    BlobsPruned,
    LogRepaired,
    Order,
    PairsMeasured,
    ProgramsMeasured,
    Record,
    Reply,
    RequestLost,
    RunInterrupted,
    RunResumed,
    RunStarted,
    Sha,
)

Sort = Literal["unsupported", "pruned", "not_derivable"]


@dataclass(frozen=True)
class Finding:
    """Something in the log that its evidence does not support, or that nobody can derive here."""

    seq: int
    kind: str
    problem: str
    sort: Sort = "unsupported"
    """Pruned: evidence was removed on purpose, so that nobody can say whether it supports this.
    Not derivable: by rules of a version that is not at hand."""

    def __str__(self) -> str:
        return f"record {self.seq} ({self.kind}): {self.problem}"


def audit(
    records: Iterable[Record],
    blob: ReadBlob,
    unreadable: type[Exception],
    former: Sequence[Rule | Reading] = FORMER,
) -> Iterator[Finding]:
    """Check a log from its first record on.

    Args:
        records: of one run, in order; the reader has checked their hash chain.
        blob: see `ReadBlob`.
        unreadable: what ``blob`` raises for a missing or changed blob.
        former: rules of earlier versions.

    Yields:
        One finding per problem. Checking goes on after one, with the state that the log gives, up
        to a record that contradicts those before it.
    """
    course = Course(blob, unreadable, former)
    for record in records:
        yield from course.findings(record)
        try:
            course.apply(record)
        except FoldError as error:
            problem = f"{error}; nothing after it can be audited"
            yield Finding(record.seq, record.event.kind, problem)
            return


@dataclass
class Course:
    """What is known before the next record."""

    blob: ReadBlob
    unreadable: type[Exception]
    former: Sequence[Rule | Reading]
    state: State = field(default_factory=State)
    policy: Policy = field(default_factory=lambda: policy({}))
    token: int = 0
    """Fencing token of the last job since the run was last taken over."""
    named: dict[Sha, set[BlobKind]] = field(default_factory=dict)
    """What the blobs named so far are."""

    def findings(self, record: Record) -> Iterator[Finding]:
        """Everything that is wrong with a record, or cannot be told."""
        seq, kind = record.seq, record.event.kind
        wrong = list(_without_error(self._standing, record))
        check = self._decided if kind in DECIDED else self._waited
        unlike = list(_without_error(check, record))
        why = self.policy.missing.get(kind)
        if why is None or kind not in DECIDED:
            wrong += unlike
        if why is not None and (unlike or kind not in DECIDED):
            yield Finding(seq, kind, f"not re-derivable by this version: {why}", "not_derivable")
        unread: dict[str, Exception] = {}
        wrong += self._read_again(record, unread)
        yield from (Finding(seq, kind, problem) for problem in wrong)
        yield from dict.fromkeys(_gap(record, error) for error in unread.values())

    def apply(self, record: Record) -> None:
        """Take in a record."""
        event = record.event
        if isinstance(event, RunStarted | RunResumed):
            self.token, self.policy = 0, policy(event.rules, self.former)
        if isinstance(event, PairsMeasured | ProgramsMeasured):
            self.token = event.token
        for kind, sha in named_by(event):
            self.named.setdefault(sha, set()).add(kind)
        self.state.apply(record)

    def _standing(self, record: Record) -> Iterator[str]:
        """What holds under every version of the rules."""
        yield from misplaced(self.state, record)
        event = record.event
        if isinstance(event, PairsMeasured | ProgramsMeasured) and event.token <= self.token:
            yield f"lease token {event.token} is not newer than {self.token}"

    def _decided(self, record: Record) -> Iterator[str]:
        """Ask the rules at hand what is due where the record stands."""
        due = decide(self.state, self.policy.rules)
        if due is None:
            yield "nothing was due here"
        elif due.event != record.event:
            yield f"the evidence supports something else: {_difference(record.event, due.event)}"
        elif due.because != record.because:
            yield f"rests on records {due.because}, not on {record.because}"

    def _waited(self, record: Record) -> Iterator[str]:
        """Nobody waits for a reply, hears an order, or stops, while a decision is due."""
        event = record.event
        is_resumed = isinstance(event, RequestLost) and event.by == "resume"
        if is_resumed or not isinstance(event, Reply | Order | RunInterrupted):
            return
        if (due := decide(self.state, self.policy.rules)) is not None:
            yield f"a decision is missing before it: {due.event.kind}"

    def _read_again(self, record: Record, unread: dict[str, Exception]) -> list[str]:
        """Check a reply or a mark against its blobs; note those that cannot be read."""
        problems: list[str] = []
        for sha in blobs_of(record.event):
            try:
                self.blob(sha)
            except self.unreadable as error:
                unread[str(error)] = error
        try:
            problems += self._evidence(record)
        except self.unreadable as error:
            unread[str(error)] = error
        except (LookupError, ValueError, ArithmeticError) as error:
            problems.append(f"it cannot be read again: {error}")
        return problems

    def _evidence(self, record: Record) -> Iterator[str]:
        event = record.event
        request = self.state.pending.get(record.because[0]) if record.because else None
        if request is not None or isinstance(event, Order):
            evidence = Evidence(event, request, self.state, self.blob)
            for reading in self.policy.readings:
                if event.kind in reading.kinds:
                    yield from reading.problems(evidence)
        elif isinstance(event, LogRepaired):
            if (n_bytes := len(self.blob(event.sha))) != event.n_bytes:
                yield f"{n_bytes} bytes were kept, not {event.n_bytes}"
        elif isinstance(event, BlobsPruned):
            yield from self._pruned(event)

    def _pruned(self, event: BlobsPruned) -> Iterator[str]:
        if event.blob_kinds != tuple(sorted(set(event.blob_kinds))):
            yield "the kinds of blobs are not in order"
        names = unlisted(self.blob(event.list))
        if len(names) != event.n_blobs:
            yield f"{len(names)} blobs are listed, not {event.n_blobs}"
        kinds = {kind for sha in names for kind in self.named.get(sha, ("nothing",))}
        if others := kinds.difference(event.blob_kinds):
            yield f"blobs of other kinds are listed: {', '.join(sorted(others))}"


def _without_error(check: Callable[[Record], Iterator[str]], record: Record) -> Iterator[str]:
    """Let a state from which nothing can follow be a problem as well."""
    try:
        yield from check(record)
    except (LookupError, ValueError, ArithmeticError) as error:
        yield f"no decision can follow from the records before it: {error}"


def _gap(record: Record, error: Exception) -> Finding:
    if isinstance(error, BlobMissingError) and error.pruned_by is not None:
        by = f"evidence was pruned by record {error.pruned_by}, not re-derivable"
        return Finding(record.seq, record.event.kind, by, "pruned")
    return Finding(record.seq, record.event.kind, str(error))


def _difference(recorded: AnyEvent, derived: AnyEvent) -> str:
    if recorded.kind != derived.kind:
        return f"{derived.kind}"
    theirs, ours = recorded.model_dump(), derived.model_dump()
    differing = [name for name in ours if ours[name] != theirs[name]]
    return ", ".join(f"{n} = {ours[n]!r}, recorded {theirs[n]!r}" for n in differing)[:600]
