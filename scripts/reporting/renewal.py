"""What became of a run's beliefs and best versions each time that its toolchain changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from events.projections.knowledge import Fact
from events.projections.state import State, replay
from events.vocabulary import (
    CandidateId,
    CandidateScreened,
    CandidateWithdrawn,
    FactJudged,
    FactState,
    Record,
    RunResumed,
    RunStarted,
    ToolchainChanged,
)
from scripts.reporting.history import Run

Outcome = Literal["held", "changed", "unknown"]
Fate = Literal["kept", "withdrawn", "unknown"]


class Renewed(NamedTuple):
    """A fact before a change, and at the end of the time under the new toolchain."""

    number: int
    fact: Fact
    before: FactState
    after: FactState
    outcome: Outcome
    reason: str


class Version(NamedTuple):
    """The best version of a kernel before a change, and what became of it."""

    kernel: str
    candidate: CandidateId
    fate: Fate
    reason: str


@dataclass(frozen=True)
class Change:
    """A new toolchain, up to the next one or the end of the log."""

    record: Record
    """That names it first."""
    fingerprints: tuple[tuple[str, str, str], ...]
    """Name, value before, value after; "" where there is none."""
    facts: tuple[Renewed, ...]
    """Those that there were before it."""
    versions: tuple[Version, ...]

    def that(self, outcome: Outcome) -> tuple[Renewed, ...]:
        """The facts with one outcome."""
        return tuple(fact for fact in self.facts if fact.outcome == outcome)


def changes(run: Run) -> tuple[Change, ...]:
    """Return every change of the toolchain, in order."""
    places = list(_places(run.records))
    states = [*(replay(run.records[:seq]) for seq in places), run.state]
    spans = pairwise([*places, len(run.records)])
    return tuple(
        _change(run.records[begin:end], before, after)
        for (begin, end), (before, after) in zip(spans, pairwise(states), strict=True)
    )


def _places(records: Sequence[Record]) -> Iterator[int]:
    """Where a toolchain is named that is not the one before."""
    now: dict[str, str] | None = None
    for record in records:
        if isinstance(record.event, RunStarted | RunResumed | ToolchainChanged):
            if now not in (None, record.event.toolchain):
                yield record.seq
            now = record.event.toolchain


def _change(span: Sequence[Record], before: State, after: State) -> Change:
    """Tell of one change.

    Args:
        span: the records under the new toolchain.
        before: the state when it came.
        after: the state at the end of that time.
    """
    names = before.toolchain | after.toolchain
    return Change(
        record=span[0],
        fingerprints=tuple(
            (name, before.toolchain.get(name, ""), after.toolchain.get(name, "")) for name in names
        ),
        facts=tuple(_facts(span, before, after)),
        versions=tuple(_versions(span, before)),
    )


def _facts(span: Sequence[Record], before: State, after: State) -> Iterator[Renewed]:
    judged = {
        r.event.fact: f"{r.event.reason} (#{r.seq})"
        for r in span
        if isinstance(r.event, FactJudged)
    }
    for number, fact in before.knowledge.facts.items():
        was, now = before.knowledge.states[number], after.knowledge.states[number]
        reason = judged.get(number) or _unjudged(fact, before, after)
        yield Renewed(number, fact, was, now, _outcome(was, now), reason)


def _outcome(was: FactState, now: FactState) -> Outcome:
    if now not in ("confirmed", "refuted"):
        return "unknown"
    return "held" if was == now else "changed"


def _unjudged(fact: Fact, before: State, after: State) -> str:
    """Why nothing is known of a fact under the new toolchain."""
    if fact.probe is not None:
        return "its probe has given no answer"
    later = [
        f"f{n}"
        for n, new in after.knowledge.facts.items()
        if n > len(before.knowledge.facts) and (new.topic, new.kernel) == (fact.topic, fact.kernel)
    ]
    measured = f"; measured anew: {', '.join(later)}" if later else ""
    return f"it has no probe{measured}"


def _versions(span: Sequence[Record], before: State) -> Iterator[Version]:
    fates: dict[CandidateId, tuple[Fate, str]] = {}
    for record in span:
        match record.event:
            case CandidateScreened(candidate=candidate, passed=True):
                fates.setdefault(candidate, ("kept", f"it builds and is correct (#{record.seq})"))
            case CandidateWithdrawn(candidate=candidate, reason=reason):
                fates.setdefault(candidate, ("withdrawn", f"{reason} (#{record.seq})"))
            case _:
                pass
    for kernel, branch in before.tree.branches.items():
        if (best := branch.incumbent) is not None:
            fate, reason = fates.get(best, ("unknown", "it was not screened again"))
            yield Version(kernel, best, fate, reason)
