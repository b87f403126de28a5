"""What passes between the director and an actor: one command, one answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from decisions.brief import Brief
from events.vocabulary import FactLearned, Reply, Request, Sha


@dataclass(frozen=True)
class Command:
    """A request with all that it rests on, blobs included, so that an actor needs no storage."""

    seq: int
    """Sequence number of the request; it makes the command idempotent."""
    place: int
    """Sequence number of the first request for this work: earlier if it was lost before."""
    request: Request
    blobs: Mapping[Sha, bytes]
    brief: Brief | None = None
    """For roles."""
    rules: Mapping[int, FactLearned] = field(default_factory=dict)
    """For screening: known legality rules, by the number of the fact."""
    toolchain: str = ""
    """Digest of the fingerprint under which the work is to be done."""

    def text(self, sha: Sha | None) -> str:
        """A blob as text, whatever its bytes are; "" for none."""
        return "" if sha is None else self.blobs[sha].decode("utf-8", "replace")


@dataclass(frozen=True)
class Answer:
    """A reply event with the bytes of every blob that it names."""

    event: Reply
    blobs: tuple[bytes, ...] = field(default=())


class Actor(Protocol):
    """One mailbox, one message at a time; may be asked twice and must not mind."""

    def handle(self, command: Command) -> Answer:
        """Do what ``command`` says; bad news about a candidate is an answer, not an exception."""
        ...
