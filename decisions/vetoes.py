"""What follows from a veto, or from a toolchain that refuses a version: it is withdrawn."""

from decisions.due import Due
from events.projections.state import State
from events.vocabulary import (
    CandidateId,
    CandidateWithdrawn,
    MeasurementRequested,
    RebaseRequested,
    Request,
    ScreeningRequested,
)


def withdraw(state: State) -> Due | None:
    """Close such a candidate as soon as nothing works on it or is measured against it."""
    for candidate, (seq, why) in state.tree.vetoes.items():
        at_work = (*state.pending.values(), *state.lost.values())
        if not any(concerns(request, candidate) for request in at_work):
            withdrawn = CandidateWithdrawn(
                candidate=candidate,
                incumbent=_restored(state, candidate),
                reason=why,
            )
            return Due(withdrawn, (seq,))
    return None


def concerns(request: Request, candidate: CandidateId) -> bool:
    """Whether a request builds, measures, rebuilds or compares with a candidate."""
    match request:
        case ScreeningRequested() | RebaseRequested():
            return request.candidate == candidate
        case MeasurementRequested():
            return candidate in (request.candidate, request.incumbent)
        case _:
            return False


def _restored(state: State, candidate: CandidateId) -> CandidateId | None:
    """The best version before one that is the best now: the last accept that may stay."""
    branch = state.tree.branches[state.tree.nodes[candidate].kernel]
    if branch.incumbent != candidate:
        return None
    earlier = (c for c in reversed(branch.accepts) if c not in state.tree.vetoes)
    return next(earlier, branch.baseline)
