"""What the run has spent and what is reserved for work without a reply."""

from dataclasses import dataclass, field

from events.vocabulary import Spend


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

    def take_off(self, spend: Spend) -> None:
        """Take off an amount that was added."""
        self.model_calls -= spend.model_calls
        self.tokens -= spend.tokens
        self.cost_usd -= spend.cost_usd
        self.device_s -= spend.device_s


@dataclass(slots=True)
class Spending:
    """Settled and reserved amounts, and the wall time of the processes that ran."""

    settled: Amount = field(default_factory=Amount)
    reserved: dict[int, Spend] = field(default_factory=dict)
    """By the sequence number of the request."""
    held: Amount = field(default_factory=Amount)
    """Sum of `reserved`."""
    wall_ns: int = 0
    last_ns: int | None = None

    @property
    def wall_s(self) -> float:
        """Seconds that the run was running, pauses between two processes left out."""
        return self.wall_ns / 1e9

    @property
    def committed(self) -> Amount:
        """Settled and reserved together."""
        a, b = self.settled, self.held
        return Amount(
            a.model_calls + b.model_calls,
            a.tokens + b.tokens,
            a.cost_usd + b.cost_usd,
            a.device_s + b.device_s,
        )

    def pass_time(self, now_ns: int, *, is_pause: bool) -> None:
        """Time has passed since the last record; nothing ran if it was a pause."""
        if self.last_ns is not None and now_ns > self.last_ns and not is_pause:
            self.wall_ns += now_ns - self.last_ns
        self.last_ns = now_ns

    def reserve(self, request: int, amount: Spend) -> None:
        """Hold back what a request may cost."""
        self.reserved[request] = amount
        self.held.add(amount)

    def settle(self, request: int, spent: Spend) -> None:
        """A request has cost ``spent``; nothing is held back for it any more."""
        self.release(request)
        self.settled.add(spent)

    def settle_device(self, request: int, device_s: float) -> None:
        """A request has cost device time alone."""
        self.release(request)
        self.settled.device_s += device_s

    def release(self, request: int) -> Spend:
        """Return what was held back for a request; nothing is any more."""
        amount = self.reserved.pop(request, None)
        if amount is None:
            return Spend()
        if self.reserved:
            self.held.take_off(amount)
        else:
            self.held = Amount()  # so that errors of rounding do not add up
        return amount
