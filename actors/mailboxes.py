"""How the director reaches actors: it sends commands and receives answers, and knows no more."""

from typing import NamedTuple, Protocol

from actors.messages import Answer, Command

MAX_REASON = 300
"""Characters of an error that a `RequestLost` repeats; the log of the actors has all of it."""


class Delivery(NamedTuple):
    """The answer to one command."""

    seq: int
    """Of the request."""
    actor: str
    answer: Answer


class Mailbox(Protocol):
    """Delivers every command once and every answer at most once; the director tells lost ones."""

    def send(self, command: Command) -> None:
        """Take a command; return at once."""
        ...

    def receive(self, timeout_s: float) -> Delivery | None:
        """Wait for the next answer; None if there is none in time."""
        ...
