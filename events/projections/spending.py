"""What the run has spent and what is reserved for work without a reply."""

from dataclasses import dataclass, field

from events.vocabulary import (
    BlobsPruned,
    BoundMeasured,
    JobFailed,
    LogRepaired,
    MeasurementRequested,
    PairsMeasured,
    Record,
    RequestLost,
    RoleReplied,
    RunResumed,
    Spend,
    TurnAssigned,
    TurnFailed,
)

AFTER_PAUSE = (RunResumed, LogRepaired, BlobsPruned)
"""Marks that follow on a time when no process drove the run."""


def plus(a: Spend, b: Spend) -> Spend:
    """Add two amounts."""
    return Spend(
        model_calls=a.model_calls + b.model_calls,
        tokens=a.tokens + b.tokens,
        cost_usd=a.cost_usd + b.cost_usd,
        device_s=a.device_s + b.device_s,
    )


@dataclass
class Spending:
    """Settled and reserved amounts, and the wall time of the processes that ran."""

    settled: Spend = field(default_factory=Spend)
    reserved: dict[int, Spend] = field(default_factory=dict)
    """By the sequence number of the request."""
    wall_ns: int = 0
    last_ns: int | None = None

    @property
    def wall_s(self) -> float:
        """Seconds that the run was running, pauses between two processes left out."""
        return self.wall_ns / 1e9

    @property
    def committed(self) -> Spend:
        """Settled and reserved together."""
        total = self.settled
        for amount in self.reserved.values():
            total = plus(total, amount)
        return total

    def apply(self, record: Record) -> None:
        """Take in one record."""
        if self.last_ns is not None and not isinstance(record.event, AFTER_PAUSE):
            self.wall_ns += max(0, record.time_ns - self.last_ns)
        self.last_ns = record.time_ns
        match record.event:
            case TurnAssigned(reserved=amount) | MeasurementRequested(reserved=amount):
                self.reserved[record.seq] = amount
            case RoleReplied(spent=amount) | TurnFailed(spent=amount):
                self._settle(record, amount)
            case PairsMeasured() | BoundMeasured() | JobFailed() as event:
                self._settle(record, Spend(device_s=event.device_s))
            case RequestLost(by=by):
                amount = self.reserved.pop(record.because[0], Spend())
                if by == "mailbox":  # its actor may have spent all of it before it was lost
                    self.settled = plus(self.settled, amount)
            case _:
                pass

    def _settle(self, record: Record, amount: Spend) -> None:
        self.reserved.pop(record.because[0], None)
        self.settled = plus(self.settled, amount)
