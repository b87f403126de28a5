"""How much more may be proposed, and how much of it is on its way."""

from events.projections.state import State


def remaining(state: State) -> int:
    """Candidates that may still be proposed, those of open threads taken off."""
    limit = state.begun.campaign.search.max_candidates
    return limit - state.tree.n_search - len(state.desk.threads)


def designs_left(state: State, kernel: str) -> int:
    """Whole-kernel designs that may still be begun; a repair is no other design."""
    branch = state.tree.branches[kernel]
    n_open = sum(
        t.kernel == kernel and t.form == "design" and t.turn.repairs is None
        for t in state.desk.threads.values()
    )
    n_begun = branch.n_designs - branch.n_repaired + n_open
    return state.begun.campaign.search.max_designs - n_begun


def in_flight(state: State, kernel: str) -> int:
    """Candidates and threads on their way; designs that wait for an implementer are not."""
    threads = state.desk.threads.values()
    n_threads = sum(t.kernel == kernel and not t.designs for t in threads)
    return len(state.tree.branches[kernel].open) + n_threads


def is_full(state: State, kernel: str) -> bool:
    """Whether a kernel has as many candidates on their way as it may have."""
    return in_flight(state, kernel) >= state.begun.campaign.search.in_flight
