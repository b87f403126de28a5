"""The port between a role and whoever answers its prompt."""

from dataclasses import dataclass
from typing import Protocol

from targets.protocol import Ask


@dataclass(frozen=True)
class Completion:
    """One reply and what it cost; a figure that the provider cannot know is 0."""

    text: str
    tokens_in: int
    tokens_out: int
    cost_usd: float
    n_calls: int
    """Requests sent to a model, repeated ones included."""


class ProviderError(Exception):
    """No reply: time limit, exit status, network, refusal, or a provider that is not set up.

    Attributes:
        reason: what went wrong and, where known, what to do.
        n_calls: requests sent to a model before giving up.
        abandoned: a request was still running; it may have been paid for.
    """

    def __init__(self, reason: str, n_calls: int = 0, abandoned: bool = False) -> None:
        super().__init__(reason, n_calls, abandoned)
        self.reason, self.n_calls, self.abandoned = reason, n_calls, abandoned

    def __str__(self) -> str:
        return self.reason


class Provider(Protocol):
    """Answers a prompt with a text; it knows nothing of the reply's format."""

    @property
    def name(self) -> str:
        """As `RoleReplied.provider` records it."""

    def complete(self, prompt: str, ask: Ask) -> Completion:
        """Return one reply.

        Args:
            prompt: for a model or an agent.
            ask: the same question as values, for a catalogue.

        Raises:
            ProviderError: there is no reply.
        """
        ...
