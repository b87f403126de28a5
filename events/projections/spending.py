"""What the run may spend, what it has spent, and what is reserved for work without a reply."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from events.campaign import Budget
from events.vocabulary import LimitChange, Spend


@dataclass(slots=True)
class Amount:
    """A running total of what `Spend` has the units of."""

    model_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    device_s: float = 0.0

    def add(self, spend: Spend) -> None:
        """Add an amount."""
        self.model_calls += spend.model_calls
        self.tokens += spend.tokens
        self.cost_usd += spend.cost_usd
        self.device_s += spend.device_s


@dataclass(slots=True)
class Spending:
    """Limits, settled and reserved amounts, and the wall time of the processes that ran."""

    limits: Budget = field(default_factory=Budget)
    settled: Amount = field(default_factory=Amount)
    reserved: dict[int, Spend] = field(default_factory=dict)
    """By the sequence number of the request."""
    wall_ns: int = 0
    last_ns: int | None = None

    @property
    def wall_s(self) -> float:
        """Seconds that the run was running, without times when it was paused or had no process."""
        return self.wall_ns / 1e9

    @property
    def committed(self) -> Amount:
        """Settled and reserved together."""
        total = replace(self.settled)
        for amount in self.reserved.values():  # no more than may be under way at a time
            total.add(amount)
        return total

    def pass_time(self, now_ns: int, *, is_pause: bool) -> None:
        """Time has passed since the last record; nothing ran if it was a pause."""
        if self.last_ns is not None and now_ns > self.last_ns and not is_pause:
            self.wall_ns += now_ns - self.last_ns
        self.last_ns = now_ns

    def settle(self, request: int, spent: Spend) -> None:
        """A request has cost ``spent``; nothing is held back for it any more."""
        self.reserved.pop(request, None)
        self.settled.add(spent)

    def settle_device(self, request: int, device_s: float) -> None:
        """A request has cost device time alone."""
        self.reserved.pop(request, None)
        self.settled.device_s += device_s

    def lose(self, request: int, *, is_spent: bool) -> None:
        """A request was lost; its actor may have spent all of it before, or nothing."""
        amount = self.reserved.pop(request, None)
        if is_spent and amount is not None:
            self.settled.add(amount)


def changed(limits: Budget, changes: Iterable[LimitChange]) -> Budget:
    """Return the limits after the changes, taken one after the other.

    Raises:
        ValueError: there is no limit to add to, or what comes out is none.
    """
    new = limits.model_dump()
    for resource, amount, is_relative in ((c.resource, c.amount, c.is_relative) for c in changes):
        before = new[resource]
        if is_relative and before is None:
            raise ValueError(f"{resource} has no limit to change by {amount:+g}; give it one first")
        new[resource] = before + amount if is_relative else amount
    return Budget.model_validate(new)
