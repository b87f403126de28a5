"""The port between a role and whoever answers its prompt."""

from dataclasses import dataclass
from typing import Protocol

from actors.screening import sha256
from decisions.settling import NOTHING
from events.vocabulary import Sha, TurnAssigned, Usage
from targets.protocol import Ask


@dataclass(frozen=True)
class Question:
    """What a provider is asked."""

    prompt: str
    """For a model, an agent or a person."""
    ask: Ask
    """The same as values, for a catalogue."""
    turn: TurnAssigned
    """The request; asked again, it is the same one."""

    @property
    def sha(self) -> Sha:
        """Name of the prompt as a blob."""
        return sha256(self.prompt.encode())


@dataclass(frozen=True)
class Completion:
    """One reply and what it took."""

    text: str
    usage: Usage | None
    """As the provider counts; None if it does not, or cannot be believed."""
    n_calls: int
    """Requests sent to a model, repeated ones included."""


class ProviderError(Exception):
    """No reply: time limit, exit status, network, refusal, or a provider that is not set up.

    Attributes:
        reason: what went wrong and, where known, what to do.
        n_calls: requests sent to a model before giving up.
        usage: what they took; None if one of them may have been paid for and nobody can tell.
    """

    def __init__(self, reason: str, n_calls: int = 0, usage: Usage | None = NOTHING) -> None:
        super().__init__(reason, n_calls, usage)
        self.reason, self.n_calls, self.usage = reason, n_calls, usage

    def __str__(self) -> str:
        return self.reason


class Provider(Protocol):
    """Answers a prompt with a text; it knows nothing of the reply's format.

    Turns may come at the same time, from threads of one process.
    """

    @property
    def name(self) -> str:
        """As `RoleReplied.provider` records it."""

    def complete(self, question: Question) -> Completion:
        """Return one reply.

        Raises:
            ProviderError: there is no reply.
        """
        ...
