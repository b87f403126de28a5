"""The opening: every kernel's baseline and canaries enter the tree."""

from decisions.due import Due
from events.projections.state import State
from events.projections.tree import Branch
from events.vocabulary import CandidateProposed, Form, Sha


def propose(state: State) -> Due | None:
    """Propose the target's own sources that are not in the tree yet."""
    start = state.begun
    for kernel in start.campaign.kernels:
        sources = start.sources[kernel]
        own: tuple[tuple[Form, Sha, Sha, str], ...] = (
            ("baseline", sources.baseline, sources.baseline_normalized, "the plain first version"),
            ("canary_wrong", sources.canary_wrong, sources.canary_wrong, "must be found wrong"),
            ("canary_slow", sources.canary_slow, sources.canary_slow, "must be found slower"),
        )
        n_known = len(state.tree.branches.get(kernel, Branch()).nodes)
        if n_known < len(own):
            form, source, normalized, why = own[n_known]
            proposal = CandidateProposed(
                candidate=state.tree.next_id,
                kernel=kernel,
                form=form,
                parent=None,
                hypothesis=why,
                source=source,
                normalized=normalized,
                author="target",
            )
            return Due(proposal, (0,))
    return None
