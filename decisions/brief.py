"""What a role is told: the part of the state that its prompt is made of."""

from dataclasses import dataclass

from events.campaign import Model
from events.vocabulary import CandidateId, Sha


@dataclass(frozen=True)
class Lesson:
    """An earlier candidate of the kernel and what became of it."""

    candidate: CandidateId
    form: str
    hypothesis: str
    verdict: str
    """For people: ``accepted``, ``refused at build: ...``, ``slower``, ``shelved: ...``."""
    effect: float | None
    """Log-percent against the best version of its time; negative is faster."""


@dataclass(frozen=True)
class Brief:
    """Everything that a role's prompt may say, besides the texts named by hash."""

    kernel: str
    task: str
    """The kernel's card."""
    incumbent: CandidateId
    incumbent_source: Sha
    speedup: float | None
    """Of the best version over the baseline, as claimed by its accepts."""
    time_over_bound: float | None
    bottleneck: str
    """The analyst's words on this incumbent; "" before there are any."""
    facts: tuple[tuple[str, str], ...]
    """``(fact id, claim)``; the ids are what a reply cites."""
    lessons: tuple[Lesson, ...]
    tried: tuple[str, ...]
    """Catalogue moves already proposed."""
    model: Model
    seed: int
