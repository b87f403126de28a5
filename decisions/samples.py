"""From raw launches to pairs: the device reports by it, and audit redoes it from the blob."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from events.vocabulary import Pair, Spread

ROUNDS = 7
"""Times that a job of programs goes round its arms; the first round is a warm-up."""


@dataclass(frozen=True)
class TimedRun:
    """One run of one arm."""

    arm: int
    """0 is the incumbent, 1 the candidate; in a job of programs these follow."""
    launches_s: tuple[float, ...]
    probe_s: float

    @property
    def time_s(self) -> float:
        """Median of the launches, seconds per launch."""
        return statistics.median(self.launches_s)


def encode(runs: Sequence[TimedRun]) -> bytes:
    """Write runs as the JSON of a samples blob."""
    return json.dumps(
        [{"arm": r.arm, "launches_s": r.launches_s, "probe_s": r.probe_s} for r in runs]
    ).encode()


def decode(samples: bytes) -> tuple[TimedRun, ...]:
    """Read a samples blob.

    Raises:
        ValueError: it is not one.
    """
    try:
        return tuple(
            TimedRun(int(r["arm"]), tuple(map(float, r["launches_s"])), float(r["probe_s"]))
            for r in json.loads(samples)
        )
    except (LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a samples blob: {error}") from error


def schedule(coins: Sequence[bool]) -> tuple[int, ...]:
    """Arms in the order of a job: one warm-up pair, then a pair per coin."""
    return tuple(arm for first in (False, *coins) for arm in ((1, 0) if first else (0, 1)))


def rounds(n_arms: int) -> tuple[int, ...]:
    """Arms in the order of a job of programs."""
    return tuple(range(n_arms)) * ROUNDS


def pairs(runs: Sequence[TimedRun]) -> tuple[Pair, ...]:
    """The pairs of a job; the first one is the warm-up and is left out."""
    return tuple(_pair(a, b) for a, b in zip(runs[2::2], runs[3::2], strict=True))


def _pair(first: TimedRun, second: TimedRun) -> Pair:
    incumbent, candidate = (first, second) if first.arm == 0 else (second, first)
    return Pair(
        candidate_first=first.arm == 1,
        incumbent_s=incumbent.time_s,
        candidate_s=candidate.time_s,
        probe_s=first.probe_s,
    )


def spreads(runs: Sequence[TimedRun], n_arms: int) -> tuple[Spread, ...]:
    """Run times per arm of a job of programs; the first round is the warm-up and is left out."""
    rest = runs[n_arms:]
    return tuple(_spread([run.time_s for run in rest if run.arm == arm]) for arm in range(n_arms))


def _spread(times_s: Sequence[float]) -> Spread:
    return Spread(low=min(times_s), median=statistics.median(times_s), high=max(times_s))
