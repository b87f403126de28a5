"""What the operator of a simulated world orders."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from events.projections.state import State
from events.vocabulary import (
    CandidateId,
    CandidateVetoed,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    OrderId,
)
from sim.faults import Outage

T = TypeVar("T")


class Given(NamedTuple):
    """An order and when it is given, in seconds since the start."""

    at_s: float
    order: Order


def given(outage: Outage, state: State) -> Iterator[Given]:
    """Iterate over the orders of one outage in a run that has come to ``state``.

    A pause ends after its time; half of the vetoes hit the best version of a kernel.
    """
    name = _name(outage.at_s)
    tree, kernels = state.tree, tuple(state.tree.branches)
    match outage.kind:
        case "pause":
            yield Given(outage.at_s, OperatorPaused(order=name))
            until_s = outage.at_s + outage.for_s
            yield Given(until_s, OperatorContinued(order=_name(until_s)))
        case "hint" if kernels:
            kernel, text = _pick(kernels, outage.share), f"think of {outage.for_s:.0f}"
            yield Given(outage.at_s, OperatorHinted(order=name, kernel=kernel, text=text))
        case "veto":
            best = [b.accepts[-1] for b in tree.branches.values() if b.accepts]
            found: Sequence[CandidateId] = [n for n, node in tree.nodes.items() if node.is_search]
            share = 2 * outage.share % 1
            if best and outage.share < 0.5:
                found = best
            if found:
                candidate = _pick(found, share)
                vetoed = CandidateVetoed(order=name, candidate=candidate, reason="it looks odd")
                yield Given(outage.at_s, vetoed)
        case _:
            pass


def _name(at_s: float) -> OrderId:
    return f"{round(at_s * 1e9):020d}-00000000"


def _pick(these: Sequence[T], share: float) -> T:
    return these[int(share * len(these))]
