"""What is read of the target's documents, and what becomes of what agents claim."""

from collections.abc import Iterator

from decisions.due import Due
from decisions.turns import cannot_ask, reservation
from events.projections.state import State
from events.vocabulary import (
    Complaint,
    FactProposed,
    Nothing,
    RoleReplied,
    Sha,
    Summary,
    TurnAssigned,
    TurnDropped,
    TurnFailed,
)


def propose(state: State) -> Due | None:
    """Put the next claim of a reply among the facts."""
    for seq, made in state.reading.made.items():
        claim = made.claims[0]
        proposed = FactProposed(
            topic=made.topic,
            kernel=made.kernel,
            claim=claim.says,
            passage=claim.quote,
            probe=claim.probe,
            author=made.author,
        )
        return Due(proposed, (seq,))
    return None


def read(state: State) -> Due | None:
    """Go on with the passage that is being read, or hand an analyst the next one."""
    reading = state.reading
    if reading.turn is not None:
        return None if reading.reply is None else _proceed(state, reading.turn)
    if state.closed or state.begun.campaign.models.of("analyst").provider == "catalogue":
        return None
    kernel = state.begun.campaign.kernels[0]
    branch = state.tree.branches.get(kernel)
    if branch is None or branch.incumbent is None or cannot_ask(state, "summarize"):
        return None
    title, passage = next(_unread(state), ("", None))
    if passage is None:
        return None
    best, turn = state.tree.incumbent(kernel), state.desk.n_turns + 1
    request = TurnAssigned(
        turn=turn,
        kernel=kernel,
        role="analyst",
        task="summarize",
        parent=best.candidate,
        thread=turn,
        document=title,
        passage=passage,
        reserved=reservation(state, "summarize"),
        reasons=f"passage {reading.n_read + 1} of the documents",
    )
    return Due(request, (best.decided if best.decided is not None else best.proposed,))


def _unread(state: State) -> Iterator[tuple[str, Sha]]:
    """Titles and passages that no analyst was given."""
    passages = [
        (text.title, passage) for text in state.begun.documents for passage in text.passages
    ]
    yield from passages[state.reading.n_read :]


def _proceed(state: State, turn: TurnAssigned) -> Due:
    because = (state.reading.reply_seq,)
    reason = "the search is closed"
    match state.reading.reply:
        case _ if state.closed:
            pass
        case RoleReplied(outcome=Complaint(reason=complaint), reply=previous):
            refusal = cannot_ask(state, "summarize")
            if turn.attempt < state.begun.campaign.search.repairs and refusal is None:
                return Due(_again(state, turn, complaint, previous), because)
            reason = refusal or f"cannot be used after repair: {complaint}"
        case RoleReplied(outcome=Summary(claims=claims, dropped=dropped)):
            reason = f"the passage is read: {len(claims)} claims, {len(dropped)} complaints"
        case RoleReplied(outcome=Nothing(reason=said)) | TurnFailed(reason=said):
            reason = said
        case reply:
            raise LookupError(f"nobody can tell what a summary {reply} is")
    return Due(TurnDropped(turn=turn.turn, reason=reason), because)


def _again(state: State, turn: TurnAssigned, complaint: str, previous: Sha) -> TurnAssigned:
    update = {
        "turn": state.desk.n_turns + 1,
        "attempt": turn.attempt + 1,
        "complaint": complaint,
        "previous": previous,
        "reasons": "one repair turn with the exact complaint",
    }
    return turn.model_copy(update=update)
