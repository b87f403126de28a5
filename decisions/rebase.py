"""Steps in flight when their parent is replaced: the same edits, tried on the new best version."""

from decisions.due import Due
from events.projections.state import State
from events.vocabulary import CandidateProposed, RebaseRequested


def request(state: State) -> Due | None:
    """Ask for the oldest stale step on the best version of today."""
    if state.closed:
        return None
    for candidate in state.tree.stale:
        node = state.tree.nodes[candidate]
        best = state.tree.incumbent(node.kernel)
        if node.reply is None or node.decided is None:
            raise LookupError(f"c{candidate} is stale without a reply or a verdict")
        wanted = RebaseRequested(
            candidate=candidate,
            kernel=node.kernel,
            onto=best.candidate,
            onto_source=best.source,
            reply=node.reply,
        )
        return Due(wanted, (node.decided, best.decided or best.proposed))
    return None


def propose(state: State) -> Due | None:
    """Let a step whose edits fit the new best version enter the tree again."""
    if state.closed:
        return None
    for candidate, (seq, draft) in state.tree.reapplied.items():
        node = state.tree.nodes[candidate]
        proposal = CandidateProposed(
            candidate=state.tree.next_id,
            kernel=node.kernel,
            form="step",
            parent=state.tree.rebased_onto[candidate],
            hypothesis=draft.hypothesis,
            expected_speedup=draft.expected_speedup,
            source=draft.source,
            normalized=draft.normalized,
            move=draft.move,
            cites=draft.cites,
            author=node.author,
            models=node.models,
            reply=node.reply,
            rebased_from=candidate,
        )
        return Due(proposal, (seq, node.proposed))
    return None
