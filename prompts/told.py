"""What a prompt may show: the state, as protocols, and the texts beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class FactTold(Protocol):
    """Something that is believed, doubted or refuted."""

    @property
    def name(self) -> str:
        """What a reply cites, such as ``f3``."""

    @property
    def claim(self) -> str:
        """One sentence."""

    @property
    def state(self) -> str:
        """``confirmed``, ``stale``, ``proposed`` or ``refuted``."""

    @property
    def is_rule(self) -> bool:
        """Whether screening refuses what breaks it, whoever knows of it."""

    @property
    def uses(self) -> int:
        """Candidates that cited it."""


class LessonTold(Protocol):
    """An earlier candidate and its verdict."""

    @property
    def candidate(self) -> int:
        """Its number."""

    @property
    def form(self) -> str:
        """Design, step, baseline or canary."""

    @property
    def hypothesis(self) -> str:
        """What its author expected."""

    @property
    def verdict(self) -> str:
        """What became of it."""

    @property
    def effect(self) -> float | None:
        """Log-percent against the best version of its time; None if not measured."""


class DesignTold(Protocol):
    """What the architect says of a design besides its plan."""

    @property
    def hypothesis(self) -> str:
        """What it changes, and why that is faster."""

    @property
    def bottleneck(self) -> str:
        """What will limit it; "" if nobody said."""

    @property
    def bytes_moved(self) -> float | None:
        """Off chip in one launch."""


class Told(Protocol):
    """The state that a prompt may show; `decisions.brief.Brief` is one."""

    @property
    def kernel(self) -> str:
        """Its name."""

    @property
    def task(self) -> str:
        """The kernel's card."""

    @property
    def incumbent(self) -> int:
        """Number of the best version."""

    @property
    def speedup(self) -> float | None:
        """Of the best version over the baseline."""

    @property
    def time_over_bound(self) -> float | None:
        """Of the best version."""

    @property
    def bottleneck(self) -> str:
        """The analyst's words, if there are any."""

    @property
    def facts(self) -> Sequence[FactTold]:
        """What is believed first."""

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Hint ids and what the operator said."""

    @property
    def lessons(self) -> Sequence[LessonTold]:
        """Earlier candidates, the latest last."""

    @property
    def tried(self) -> Sequence[str]:
        """Catalogue moves already proposed."""

    @property
    def n_designs(self) -> int:
        """Architect: designs that there is room for."""

    @property
    def design(self) -> DesignTold | None:
        """Implementer and reviewer: the design that the source is to be, or is, of."""

    @property
    def claim(self) -> str:
        """Reviewer: the draft's hypothesis."""

    @property
    def refusal(self) -> str:
        """Implementer: why screening refused the source that it is to repair, if it is to."""


@dataclass(frozen=True)
class Texts:
    """The texts that a prompt shows besides the state; "" where there is none."""

    source: str
    """Of the best version."""
    plan: str = ""
    document: str = ""
    """Title of the document that the passage is of."""
    passage: str = ""
    draft: str = ""
    complaint: str = ""
    """Why the previous reply could not be used."""
    diagnostics: str = ""
    """What the toolchain said of a draft that is to be repaired."""
    previous: str = ""
    profile: str = ""
    """Of the best version's static schedule."""
