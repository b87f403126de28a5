"""Which blobs an event names: they are durable before it, and audit reads each of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from events.vocabulary import (
    Analysis,
    AnyEvent,
    BlobKind,
    BlobsPruned,
    CandidateExamined,
    CandidateProposed,
    Claim,
    Designs,
    Draft,
    EditsReapplied,
    FactChecked,
    FactLearned,
    FactProposed,
    LogRepaired,
    PairsMeasured,
    ProgramsMeasured,
    RoleReplied,
    RunStarted,
    Sha,
    Summary,
)


class Named(NamedTuple):
    """A blob as an event names it."""

    kind: BlobKind
    sha: Sha


def blobs_of(event: AnyEvent) -> tuple[Sha, ...]:
    """The blobs that ``event`` is the first to name; requests only repeat the names of others."""
    return tuple(sha for _, sha in named_by(event))


def named_by(event: AnyEvent) -> tuple[Named, ...]:
    """The same blobs with what each of them is."""
    match event:
        case RunStarted() as started:
            return _of_start(started)
        case RoleReplied() as reply:
            return _of_reply(reply)
        case CandidateProposed(source=source) | EditsReapplied(outcome=Draft(source=source)):
            return (Named("source", source),)
        case CandidateExamined() as examined:
            return _of_examination(examined)
        case FactLearned() | FactProposed() | FactChecked():
            return _of_fact(event)
        case PairsMeasured(samples=samples) | ProgramsMeasured(samples=samples):
            return (Named("samples", samples),)
        case LogRepaired(sha=sha):
            return (Named("torn_tail", sha),)
        case BlobsPruned(list=sha):
            return (Named("pruned_list", sha),)
        case _:
            return ()


def _of_start(started: RunStarted) -> tuple[Named, ...]:
    own = (Named("source", sha) for sha in _own_sources(started))
    read = (Named("passage", sha) for text in started.documents for sha in text.passages)
    offered = (named for offer in started.offers for named in _of_fact(offer))
    return (*own, *read, *offered)


def _of_fact(event: FactLearned | FactProposed | FactChecked) -> tuple[Named, ...]:
    match event:
        case FactLearned(probe=probe, trials=trials):
            tried = tuple(Named("source", trial.source) for trial in trials)
            return (Named("source", probe.source), *tried) if probe else tried
        case FactProposed(passage=passage, probe=probe):
            own = (Named("passage", passage or ""), Named("source", probe.source if probe else ""))
            return tuple(named for named in own if named.sha)
        case FactChecked(diagnostics=diagnostics):
            return (Named("diagnostics", diagnostics),) if diagnostics else ()


def _of_claims(claims: Sequence[Claim]) -> Iterator[Named]:
    for claim in claims:
        if claim.quote is not None:
            yield Named("passage", claim.quote)
        if claim.probe is not None:
            yield Named("source", claim.probe.source)


def _own_sources(start: RunStarted) -> Iterator[Sha]:
    """The target's own: what the search starts from, and its microbenchmarks."""
    for own in start.sources.values():
        yield from (own.baseline, own.canary_wrong, own.canary_slow, *own.bounds.values())
    for family in start.microbenchmarks.values():
        yield from (point.source for point in family.points.values())


def _of_examination(examined: CandidateExamined) -> tuple[Named, ...]:
    found: tuple[tuple[BlobKind, Sha | None], ...] = (
        ("artifact", examined.artifact),
        ("diagnostics", examined.diagnostics),
        ("profile", examined.cost.profile if examined.cost else None),
    )
    return tuple(Named(kind, sha) for kind, sha in found if sha)


def _of_reply(reply: RoleReplied) -> tuple[Named, ...]:
    own = (
        Named("prompt", reply.prompt),
        Named("reply", reply.reply),
        Named("template", reply.template),
    )
    match reply.outcome:
        case Designs(designs=designs):
            return (*own, *(Named("plan", design.plan) for design in designs))
        case Draft(source=source):
            return (*own, Named("source", source))
        case Analysis(claims=claims) | Summary(claims=claims):
            return (*own, *_of_claims(claims))
        case _:
            return own
