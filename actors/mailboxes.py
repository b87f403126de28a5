"""How the director reaches actors: it sends commands and receives answers, and knows no more."""

from typing import NamedTuple, Protocol

import structlog

from actors.messages import Actor, Answer, Command
from events.vocabulary import RequestLost

_log = structlog.get_logger()

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


def handled(actor: Actor, name: str, command: Command) -> Answer:
    """Let an actor of this process handle a command; whatever it raises, its work is lost."""
    try:
        return actor.handle(command)
    except Exception as error:  # noqa: BLE001  # it may be any defect, of a target as well
        _log.exception("request lost", actor=name, request=command.seq)
        return lost(name, f"{type(error).__name__}: {str(error)[:MAX_REASON]}")


def lost(name: str, reason: str) -> Answer:
    """What a mailbox says of a command that has no answer."""
    return Answer(RequestLost(by="mailbox", reason=f"{name}: {reason}"))
