"""From a request in the log to the command that an actor gets."""

from actors.messages import Command
from decisions.brief import Brief, brief
from decisions.screening import rules
from events.blobs import Blobs
from events.projections.state import State
from events.vocabulary import (
    FactCheckRequested,
    LearningRequested,
    MeasurementRequested,
    RebaseRequested,
    Request,
    ScreeningRequested,
    Sha,
    TurnAssigned,
)


def command(state: State, seq: int, place: int, request: Request, blobs: Blobs) -> Command:
    """Word the command for ``request``; ``state`` is the one right after its record."""
    told = brief(state, request) if isinstance(request, TurnAssigned) else None
    known = rules(state, request.candidate) if isinstance(request, ScreeningRequested) else {}
    named = {sha: blobs.get(sha) for sha in _named(request, told)}
    return Command(seq, place, request, named, told, known, state.toolchain_digest)


def _named(request: Request, told: Brief | None) -> tuple[Sha, ...]:
    match request:
        case TurnAssigned() as turn:
            own = (told.incumbent_source, told.incumbent_profile) if told else ()
            named = (*own, turn.plan, turn.draft, turn.diagnostics, turn.passage, turn.previous)
            return tuple(sha for sha in named if sha)
        case RebaseRequested(onto_source=onto_source, reply=reply):
            return (onto_source, reply)
        case ScreeningRequested(source=source):
            return (source,)
        case MeasurementRequested() as job:
            return (job.incumbent_artifact, job.candidate_artifact, *job.programs.values())
        case FactCheckRequested(probe=probe):
            return (probe.source,)
        case LearningRequested(diagnostics=diagnostics, source=source) as asked:
            known = (*asked.known_bad, *asked.known_good, *asked.elsewhere)
            return tuple(sha for sha in (diagnostics, source, *known) if sha)
