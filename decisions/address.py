"""Who takes which request."""

from events.vocabulary import (
    FactCheckRequested,
    LearningRequested,
    MeasurementRequested,
    RebaseRequested,
    Request,
    ScreeningRequested,
    TurnAssigned,
)

DIRECTOR = "director"
"""Writes everything but replies."""
OPERATOR = "operator"
"""Gives orders, and writes what a command does to a run that nobody drives."""


def address(request: Request) -> str:
    """Name of the actor, or pool, that takes a request."""
    match request:
        case TurnAssigned(role=role):
            return role
        case RebaseRequested():
            return "implementer"
        case ScreeningRequested():
            return "screening"
        case MeasurementRequested():
            return "device"
        case LearningRequested() | FactCheckRequested():
            return "keeper"
