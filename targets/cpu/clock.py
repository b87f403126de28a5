"""Whether the times that a runner claims can be true.

An artifact shares the runner's memory and could change its clock readings. The parent was there
when each launch was announced and ended, and its own stamps are out of the artifact's reach. They
are late whenever the machine is busy, so only medians over an arm's launches count, and the arms
of one job are the measure of each other.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

from targets.cpu.job import Launch, Step

_MAX_RATE: Final = 200e9
"""Bytes/s that no core gets from main memory."""
_MAX_EXCESS: Final = 0.5
"""Share of the claimed time that may go by unclaimed, beyond what preparing takes."""
_PREPARE_S: Final = 0.0002
_PREPARE_RATE: Final = 1e9
"""Bytes/s at which the harness surely prepares output buffers."""


def clock_fault(
    steps: Sequence[Step], launches: Sequence[Launch], arm: int, *, weights: int, outputs: int
) -> str:
    """Return why the times of ``arm`` cannot be true, or "".

    Args:
        steps: all launches of the job as planned.
        launches: the same as reported.
        arm: whose times to judge.
        weights: bytes that a launch of this arm must read from main memory; 0 if unknown.
        outputs: bytes that the harness prepares before a launch.
    """
    own = [x for step, x in zip(steps, launches, strict=True) if step.arm == arm]
    claimed = median(x.ended_s - x.begun_s for x in own)
    if not all(x.announced_s <= x.begun_s <= x.ended_s for x in own):
        return "its clock was changed: times run backwards"
    if claimed <= 0 or weights / claimed > _MAX_RATE:
        return f"its clock was changed: {weights} bytes of weights in {claimed * 1e6:.3g} us"
    unclaimed = _unclaimed_s(steps, launches)
    usual = 2 * min((gone for of, gone in unclaimed.items() if of != arm), default=0.0)
    allowed = _MAX_EXCESS * claimed + max(_PREPARE_S + outputs / _PREPARE_RATE, usual)
    if unclaimed.get(arm, 0.0) > allowed:
        seen = claimed + unclaimed[arm]
        return f"its clock was changed: claims {claimed * 1e6:.3g} us of {seen * 1e6:.3g} us"
    return ""


def _unclaimed_s(steps: Sequence[Step], launches: Sequence[Launch]) -> dict[int, float]:
    """Return per arm the median of the time that went by unclaimed, a launch."""
    gone: dict[int, list[float]] = {}
    for i, (step, launch) in enumerate(zip(steps, launches, strict=True)):
        is_last = i + 1 == len(steps)
        plain = not (step.report or is_last or steps[i + 1].probe)
        until_s = launches[i + 1].seen_start_s if plain else launch.seen_end_s
        unclaimed = until_s - launch.seen_start_s - (launch.ended_s - launch.begun_s)
        gone.setdefault(step.arm, []).append(unclaimed)
    return {arm: median(values) for arm, values in gone.items()}
