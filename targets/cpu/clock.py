"""Whether the times that a runner claims can be true, and are of the whole work.

An artifact shares the runner's memory and could change its clock readings. The parent was there
when each launch was announced and ended, and its own stamps are out of the artifact's reach. They
are late whenever the machine is busy, so only medians over an arm's launches count, and the arms
of one job are the measure of each other.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

from targets.cpu.job import Launch, Step
from targets.protocol import MeasureFailed

_MAX_RATE: Final = 200e9
"""Bytes/s that no core gets from main memory."""
_MAX_EXCESS: Final = 0.2
"""Share of the claimed time that may go by unclaimed, beyond what preparing takes."""
_MIN_FRESH: Final = 3
_MAX_SLOWER: Final = 1.5
_PREPARE_S: Final = 0.0002
_PREPARE_RATE: Final = 1e9
"""Bytes/s at which the harness surely prepares output buffers."""


def clock_fault(
    steps: Sequence[Step], launches: Sequence[Launch], arm: int, *, weights: int, outputs: int
) -> MeasureFailed | None:
    """Return why the times of ``arm`` cannot be used, or None.

    The arm is blamed if nearly all of its launches speak against it; if only most do, the machine
    may have been too busy, and the job says so.

    Args:
        steps: all launches of the job as planned.
        launches: the same as reported.
        arm: whose times to judge.
        weights: bytes that a launch of this arm must read from main memory; 0 if unknown.
        outputs: bytes that the harness prepares before a launch.
    """
    own = [x for step, x in zip(steps, launches, strict=True) if step.arm == arm]
    claimed = median(x.claimed_s for x in own)
    if not all(x.announced_s <= x.begun_s <= x.ended_s for x in own):
        return MeasureFailed(arm, "its clock was changed: times run backwards")
    if claimed <= 0 or weights / claimed > _MAX_RATE:
        reason = f"{weights} bytes of weights in {claimed * 1e6:.3g} us"
        return MeasureFailed(arm, f"its clock was changed: {reason}")
    gone = _unclaimed_s(steps, launches)
    usual = 2 * min((median(x) for of, x in gone.items() if of != arm), default=0.0)
    allowed = _MAX_EXCESS * claimed + max(_PREPARE_S + outputs / _PREPARE_RATE, usual)
    if median(gone[arm]) <= allowed:
        return None
    reason = f"{median(gone[arm]) * 1e6:.3g} us a launch went by beyond {claimed * 1e6:.3g} us"
    if sorted(gone[arm])[len(own) // 4] <= allowed:
        return MeasureFailed(None, f"the machine is too busy to check the clock: {reason}")
    return MeasureFailed(arm, f"its clock was changed: {reason}")


def memory_fault(
    steps: Sequence[Step], launches: Sequence[Launch], arm: int
) -> MeasureFailed | None:
    """Return why ``arm`` seems to remember outputs, or None.

    Inputs recur, but for reported launches; an arm that is always much slower there does work that
    it leaves out elsewhere.

    Args:
        steps: all launches of the job as planned.
        launches: the same as reported.
        arm: whose times to judge.
    """
    own = [(step, x.claimed_s) for step, x in zip(steps, launches, strict=True) if step.arm == arm]
    fresh = [claimed for step, claimed in own if step.report]
    usual = sorted(claimed for step, claimed in own if not step.report)
    if len(fresh) < _MIN_FRESH or not usual:
        return None
    slow = usual[3 * len(usual) // 4]  # of a machine that is busy now and then, the busy part
    if min(fresh) <= _MAX_SLOWER * slow:
        return None
    times = f"{min(fresh) * 1e6:.3g} us or more, others {slow * 1e6:.3g} us"
    return MeasureFailed(arm, f"it remembers outputs: inputs that it has not seen take {times}")


def _unclaimed_s(steps: Sequence[Step], launches: Sequence[Launch]) -> dict[int, list[float]]:
    """Return per arm the times that went by unclaimed, one a launch."""
    gone: dict[int, list[float]] = {}
    for i, (step, launch) in enumerate(zip(steps, launches, strict=True)):
        is_last = i + 1 == len(steps)
        plain = not (step.report or is_last or steps[i + 1].probe)
        until_s = launches[i + 1].seen_start_s if plain else launch.seen_end_s
        gone.setdefault(step.arm, []).append(until_s - launch.seen_start_s - launch.claimed_s)
    return gone
