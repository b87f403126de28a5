"""Whether an order of the operator can be obeyed: asked before it is given, taken, and audited."""

from collections.abc import Sequence

from pydantic import ValidationError

from decisions.closing import final_device_s, final_wall_s
from events.campaign import Budget
from events.projections.spending import changed
from events.projections.state import State
from events.projections.tree import Status
from events.vocabulary import (
    BudgetChanged,
    CandidateId,
    CandidateVetoed,
    LimitChange,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    RunInterrupted,
)


def refusal(state: State, order: Order | RunInterrupted) -> str | None:
    """Why an order cannot be obeyed now, or None."""
    if order.order in state.orders:
        return "the run has taken this order before"
    if state.finished:
        return "the run has finished"
    match order:
        case OperatorPaused():
            return "the run is paused already" if state.paused else None
        case OperatorContinued():
            return None if state.paused else "the run is not paused"
        case OperatorHinted(kernel=kernel):
            return _no_hint(state, kernel)
        case CandidateVetoed(candidate=candidate):
            return _no_veto(state, candidate)
        case BudgetChanged(changes=changes):
            return _no_budget(state, changes)
        case RunInterrupted():
            return None


def _no_hint(state: State, kernel: str) -> str | None:
    if kernel not in state.desk.kernels:
        return f"there is no kernel {kernel!r}; there are: {', '.join(state.desk.kernels)}"
    return "the search is closed, so no prompt follows" if state.closed else None


def _no_veto(state: State, candidate: CandidateId) -> str | None:
    node = state.tree.nodes.get(candidate)
    if node is None:
        return f"there is no c{candidate}; the last candidate is c{len(state.tree.nodes)}"
    if not node.is_search:
        what = node.form.replace("_", " ")
        return f"c{candidate} is a {what}; only what the search has proposed can be vetoed"
    if candidate in state.tree.vetoes or node.status is Status.WITHDRAWN:
        return f"c{candidate} is vetoed already"
    if state.tree.branches[node.kernel].finished:
        return f"{node.kernel} is finished"
    return None


def _no_budget(state: State, changes: Sequence[LimitChange]) -> str | None:
    if state.closed:
        return f"the search is closed: {state.closed.reason}"
    if not changes:
        return "it changes no limit"
    try:
        limits = changed(state.spending.limits, changes)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{first['loc'][0]}: {first['msg']}"
    except ValueError as error:
        return str(error)
    return _below(state, limits, {change.resource for change in changes})


def _below(state: State, limits: Budget, resources: set[str]) -> str | None:
    """What is gone, and what the final pairs will take, stays within every limit that changes."""
    committed = state.spending.committed
    for resource in sorted(resources):
        if resource == "wall_s":
            gone = state.spending.wall_s + final_wall_s(state)
        elif resource == "device_s":
            gone = committed.device_s + final_device_s(state)
        else:
            gone = getattr(committed, resource)
        limit = getattr(limits, resource)
        if limit < gone:
            return (
                f"{resource} cannot be {limit:g}: {gone:g} are spent, reserved for work under way, "
                "or kept for the final pairs"
            )
    return None
