"""Virtual time: seconds that pass only while everybody waits."""

from simpy import Environment


class VirtualClock:
    """The time of a simulated world, and what the command at work has spent of it.

    An actor's work is done at once; the seconds that it would take are what it spends here. Its
    own clock, which is a call of this object, moves with them; the world's time follows when the
    mailbox lets them pass.

    Attributes:
        world: where processes wait for each other and for the time to pass.
    """

    def __init__(self, start_ns: int = 0, now_s: float = 0.0) -> None:
        """Begin ``now_s`` seconds after ``start_ns``, UTC in ns since the epoch."""
        self.world = Environment(now_s)
        self._start_ns = start_ns
        self._spent_s = 0.0

    def __call__(self) -> float:
        """Seconds since the start, as the actor at work sees them."""
        return float(self.world.now) + self._spent_s

    def time_ns(self) -> int:
        """UTC of the world, in ns since the epoch."""
        return self._start_ns + round(self.world.now * 1e9)

    def spend(self, seconds: float) -> None:
        """Take ``seconds`` for the work in hand."""
        self._spent_s += seconds

    def spent(self) -> float:
        """Seconds that the work in hand has taken; from here on, other work is in hand."""
        seconds, self._spent_s = self._spent_s, 0.0
        return seconds

    def restart(self, after_s: float) -> None:
        """Let time pass in which no process lives: whatever waited in the world is gone."""
        self.world = Environment(self.world.now + after_s)
        self._spent_s = 0.0
