"""How far the documents are read, and what agents claim that is not among the facts yet."""

from dataclasses import dataclass, field
from typing import NamedTuple

from events.vocabulary import (
    Analysis,
    Claim,
    FactProposed,
    RoleReplied,
    Summary,
    Topic,
    TurnAssigned,
    TurnFailed,
)


class Made(NamedTuple):
    """Claims of one reply that are still to be proposed, in order."""

    topic: Topic
    kernel: str
    """"" for the whole target."""
    author: str
    claims: tuple[Claim, ...]


@dataclass(slots=True)
class Reading:
    """An analyst reads one passage at a time; its turns belong to no design and no step."""

    n_read: int = 0
    """Passages, of all documents in order, that an analyst was given."""
    turn: TurnAssigned | None = None
    """The last turn about the passage that is being read."""
    answer: RoleReplied | TurnFailed | None = None
    """Its reply, if nobody has decided about it."""
    answer_seq: int = -1
    made: dict[int, Made] = field(default_factory=dict)
    """By the record of the reply."""

    def is_about(self, turn: int) -> bool:
        """Whether a turn is the one about the passage that is being read."""
        return self.turn is not None and self.turn.turn == turn

    def assign(self, event: TurnAssigned) -> None:
        """An analyst is asked about a passage, for the first time or again."""
        self.n_read += self.turn is None
        self.turn, self.answer = event, None

    def reply(self, event: RoleReplied, seq: int) -> TurnAssigned:
        """The analyst has answered; return what it was asked."""
        return self._answered(event, seq)

    def fail(self, event: TurnFailed, seq: int) -> TurnAssigned:
        """The analyst gave no reply; return what it was asked."""
        return self._answered(event, seq)

    def end(self) -> None:
        """Nothing more is asked about the passage."""
        self.turn = self.answer = None

    def note(self, event: RoleReplied, turn: TurnAssigned, seq: int) -> None:
        """A reply may make claims."""
        outcome = event.outcome
        author = f"{turn.role}/{event.provider}"
        # `isinstance` of a pydantic model is slow where it says no.
        if type(outcome) is Summary:
            self.made[seq] = Made("document", "", author, outcome.claims)
        elif type(outcome) is Analysis and outcome.claims:
            self.made[seq] = Made("claim", turn.kernel, author, outcome.claims)

    def propose(self, event: FactProposed, because: tuple[int, ...]) -> None:
        """The next claim of a reply is among the facts."""
        made = self.made.get(because[0]) if because else None
        if made is None:
            return
        if rest := made.claims[1:]:
            self.made[because[0]] = made._replace(claims=rest)
        else:
            del self.made[because[0]]

    def _answered(self, event: RoleReplied | TurnFailed, seq: int) -> TurnAssigned:
        if self.turn is None:
            raise LookupError("nobody is asked about a passage")
        self.answer, self.answer_seq = event, seq
        return self.turn
