"""Which blobs an event names: they are durable before it, and audit reads each of them."""

from events.vocabulary import (
    AnyEvent,
    BoundMeasured,
    CandidateExamined,
    CandidateProposed,
    DesignPlan,
    Draft,
    EditsReapplied,
    LogRepaired,
    PairsMeasured,
    RoleReplied,
    RunStarted,
    Sha,
)


def blobs_of(event: AnyEvent) -> tuple[Sha, ...]:
    """The blobs that ``event`` is the first to name; requests only repeat the names of others."""
    match event:
        case RunStarted(sources=sources):
            return tuple(
                sha
                for own in sources.values()
                for sha in (own.baseline, own.canary_wrong, own.canary_slow, *own.bounds.values())
            )
        case RoleReplied() as reply:
            own = (reply.prompt, reply.reply, reply.template)
            match reply.outcome:
                case DesignPlan(plan=plan):
                    return (*own, plan)
                case Draft(source=source):
                    return (*own, source)
                case _:
                    return own
        case CandidateProposed(source=source) | EditsReapplied(outcome=Draft(source=source)):
            return (source,)
        case CandidateExamined(artifact=artifact, diagnostics=diagnostics):
            return tuple(sha for sha in (artifact, diagnostics) if sha)
        case PairsMeasured(samples=samples) | BoundMeasured(samples=samples):
            return (samples,)
        case LogRepaired(sha=sha):
            return (sha,)
        case _:
            return ()
