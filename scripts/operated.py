"""What the operator has ordered of a run, in words and in the order of the log."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from events.vocabulary import (
    BudgetChanged,
    CandidateId,
    CandidateProposed,
    CandidateVetoed,
    CandidateWithdrawn,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    Record,
)


class Ordered(NamedTuple):
    """An order, and what followed."""

    seq: int
    """Its record."""
    what: str
    detail: str
    outcome: str = ""
    kernel: str | None = None
    """Hints: the one that it is about."""


def ordered(records: Iterable[Record]) -> tuple[Ordered, ...]:
    """Word every order of a run."""
    orders: list[tuple[int, Order]] = []
    cited: dict[str, list[str]] = {}
    withdrawn: dict[CandidateId, str] = {}
    for seq, _, _, event, _ in records:
        if isinstance(event, Order):
            orders.append((seq, event))
        elif isinstance(event, CandidateProposed):
            for cite in event.cites:
                cited.setdefault(cite, []).append(f"c{event.candidate}")
        elif isinstance(event, CandidateWithdrawn):
            withdrawn[event.candidate] = _withdrawn(seq, event)
    hints = (f"h{n}" for n in itertools.count(1))
    return tuple(_ordered(seq, order, hints, cited, withdrawn) for seq, order in orders)


def _ordered(
    seq: int,
    order: Order,
    hints: Iterator[str],
    cited: Mapping[str, Sequence[str]],
    withdrawn: Mapping[CandidateId, str],
) -> Ordered:
    what, detail = worded(order)
    match order:
        case OperatorHinted(kernel=kernel):
            hint = next(hints)
            by = ", ".join(cited.get(hint, ["nobody"]))
            return Ordered(seq, f"{hint}: {what}", detail, f"cited by {by}", kernel)
        case CandidateVetoed(candidate=candidate):
            return Ordered(seq, what, detail, withdrawn.get(candidate, "not withdrawn yet"))
        case _:
            return Ordered(seq, what, detail)


def worded(order: Order) -> tuple[str, str]:
    """Say what an order is, and its detail."""
    match order:
        case OperatorPaused():
            return "paused by the operator", ""
        case OperatorContinued():
            return "goes on, says the operator", ""
        case OperatorHinted(kernel=kernel, text=text):
            return f"the operator on {kernel}:", text
        case CandidateVetoed(candidate=candidate, reason=reason):
            return f"c{candidate} vetoed by the operator:", reason
        case BudgetChanged(changes=changes):
            said = (f"{c.resource} {c.amount:{'+g' if c.is_relative else 'g'}}" for c in changes)
            return "budget changed by the operator:", ", ".join(said)


def _withdrawn(seq: int, event: CandidateWithdrawn) -> str:
    again = "" if event.incumbent is None else f", c{event.incumbent} is the best version again"
    return f"withdrawn in record {seq}{again}"
