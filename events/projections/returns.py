"""What each model has cost in each role, and what has come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from events.vocabulary import Spend, TurnAssigned


@dataclass(slots=True)
class Return:
    """One model in one role."""

    n_turns: int = 0
    """That have ended, with a reply or without."""
    cost_usd: float = 0.0
    gain: float = 0.0
    """Log-percent: of the accepted candidates from threads in which it answered."""


@dataclass(slots=True)
class Returns:
    """All models of a run."""

    roles: dict[str, dict[str, Return]] = field(default_factory=dict)
    """By role, then by model."""

    def of(self, role: str, model: str) -> Return:
        """Of one model; one that nobody has asked yet has cost and brought nothing."""
        return self.roles.get(role, {}).get(model) or Return()

    def end(self, turn: TurnAssigned, spent: Spend) -> None:
        """A turn has ended."""
        model = self._made(turn.role, turn.model)
        model.n_turns += 1
        model.cost_usd += spent.cost_usd

    def credit(self, models: Mapping[str, str], gain: float) -> None:
        """A candidate is accepted, or was wrongly so and its gain is negative.

        Args:
            models: by role, who answered in its thread; all of them have the whole gain.
            gain: log-percent.
        """
        for role, model in models.items():
            self._made(role, model).gain += gain

    def _made(self, role: str, model: str) -> Return:
        return self.roles.setdefault(role, {}).setdefault(model, Return())
