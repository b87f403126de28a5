"""What is read of the target's documents, and what becomes of what agents claim."""

from collections.abc import Iterator

from decisions import models, turns
from decisions.due import Due
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
        return None if reading.answer is None else _proceed(state, reading.turn)
    kernel = state.begun.campaign.kernels[0]
    branch = state.tree.branches.get(kernel)
    if state.closed or branch is None or branch.incumbent is None or not _has_reader(state):
        return None
    title, passage = next(_unread(state), ("", None))
    if passage is None:
        return None
    reasons = f"passage {reading.n_read + 1} of the documents"
    turn = turns.draw_turn(state, kernel, "summarize", None, reasons)
    if turn is None:
        return None
    because = (turns.since(state.tree.incumbent(kernel)),)
    return Due(turn.model_copy(update={"document": title, "passage": passage}), because)


def _has_reader(state: State) -> bool:
    """Whether an analyst has words of its own; the catalogue has none."""
    campaign = state.begun.campaign
    pool = campaign.roles.of("analyst")
    return any(campaign.models[name].provider != "catalogue" for name in pool)


def _unread(state: State) -> Iterator[tuple[str, Sha]]:
    """Titles and passages that no analyst was given."""
    passages = [
        (text.title, passage) for text in state.begun.documents for passage in text.passages
    ]
    yield from passages[state.reading.n_read :]


def _proceed(state: State, turn: TurnAssigned) -> Due | None:
    because = (state.reading.answer_seq,)
    reason = "the search is closed"
    match state.reading.answer:
        case _ if state.closed:
            pass
        case RoleReplied(outcome=Complaint(reason=complaint), reply=previous):
            refusal = models.unaffordable(state, turn.model)
            if turn.attempt < state.begun.campaign.search.repairs and refusal is None:
                if models.is_busy(state, turn.model):
                    return None
                return Due(_again(state, turn, complaint, previous), because)
            reason = refusal or f"cannot be used after repair: {complaint}"
        case RoleReplied(outcome=Summary(claims=claims, dropped=dropped)):
            reason = f"the passage is read: {len(claims)} claims, {len(dropped)} complaints"
        case RoleReplied(outcome=Nothing(reason=said)) | TurnFailed(reason=said):
            reason = said
        case answer:
            raise LookupError(f"nobody can tell what a summary {answer} is")
    return Due(TurnDropped(turn=turn.turn, reason=reason), because)


def _again(state: State, turn: TurnAssigned, complaint: str, previous: Sha) -> TurnAssigned:
    again = turns.word(
        state, turn.kernel, "summarize", turn.model, "the same again, with the exact complaint"
    )
    update = {
        "thread": turn.thread,
        "parent": turn.parent,
        "document": turn.document,
        "passage": turn.passage,
        "attempt": turn.attempt + 1,
        "complaint": complaint,
        "previous": previous,
    }
    return again.model_copy(update=update)
