"""The director's policy: from the state of a run to the next thing to record.

`decide` is asked again after every record until nothing is due. It looks at the state alone, so
that a run killed anywhere goes on by folding its log and asking again, and ``audit`` re-derives
every decision by asking at the same place of the same log.
"""

from decisions import (
    closing,
    controls,
    device,
    learning,
    opening,
    rebase,
    screening,
    turns,
    verdicts,
)
from decisions.due import Due
from events.projections.state import State
from events.vocabulary import StateDigested

DIGEST_EVERY = 1000

RULES = (
    controls.reissue,
    controls.check,
    opening.propose,
    screening.verdict,
    verdicts.verdict,
    rebase.propose,
    rebase.request,
    turns.proceed,
    learning.request,
    closing.close,
    closing.finish,
    screening.request,
    device.next_job,
    turns.assign,
)
"""First come verdicts on what is known, then new work; the first rule with an answer wins."""


def decide(state: State) -> Due | None:
    """Return the decision or request that is due now, or None if there is only to wait."""
    if state.start is None or state.finished or state.interrupted:
        return None
    if state.seq - state.digested >= DIGEST_EVERY:
        return Due(StateDigested(digest=state.digest()), (state.seq,))
    return next((due for rule in RULES if (due := rule(state)) is not None), None)
