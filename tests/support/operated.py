"""An operator who gives orders when a run has come to certain states, for tests."""

from collections.abc import Callable, Iterator

from events.projections.state import State
from events.vocabulary import (
    BudgetChanged,
    CandidateVetoed,
    LimitChange,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    OrderId,
    RunInterrupted,
)

Plan = Callable[[State], Order | RunInterrupted | None]
"""The next order, once its time has come."""


class Operator:
    """Gives its orders one after the other.

    Attributes:
        state: of the run, as its director sees it.
    """

    def __init__(self, *plans: Plan) -> None:
        self._plans = list(plans)
        self.state: Callable[[], State] = State

    def __call__(self) -> Iterator[Order | RunInterrupted]:
        """Iterate over the orders whose time has come; each is over when the next is asked for."""
        while self._plans and (order := self._plans[0](self.state())) is not None:
            yield order
            self._plans.pop(0)


def name(number: int) -> OrderId:
    """Name of an order."""
    return f"{number:020d}-00000000"


def hint(state: State) -> Order | None:
    """When the first candidates of the search are there."""
    text = "turn the knob to 3"
    return OperatorHinted(order=name(1), kernel="alpha", text=text) if state.desk.n_turns else None


def pause(state: State) -> Order | None:
    """While a candidate is being measured."""
    job = state.ledger.running
    measured = job is not None and job.purpose == "test"
    return OperatorPaused(order=name(2)) if measured else None


def go_on(state: State) -> Order | None:
    """When all that was under way is finished; at once if it was obeyed and nobody was told."""
    return None if state.paused and state.pending else OperatorContinued(order=name(3))


def veto(number: int) -> Plan:
    """Of the best version of alpha, when it is this one to be accepted."""

    def plan(state: State) -> Order | None:
        accepts = state.tree.branches["alpha"].accepts
        if len(accepts) < number:
            return None
        why = "it reads past its buffer"
        return CandidateVetoed(order=name(4), candidate=accepts[-1], reason=why)

    return plan


def spend_more(state: State) -> Order | None:
    """After the veto was followed."""
    changes = (
        LimitChange(resource="wall_s", amount=900.0, is_relative=False),
        LimitChange(resource="wall_s", amount=100.0, is_relative=True),
        LimitChange(resource="tokens", amount=500_000.0, is_relative=False),
    )
    return None if state.tree.vetoes else BudgetChanged(order=name(5), changes=changes)


EVERYTHING: tuple[Plan, ...] = (hint, pause, go_on, veto(2), spend_more)
