"""The director's policy: from the state of a run to the next thing to record.

`decide` is asked again after every record until nothing is due. It looks at the state alone, so
that a run killed anywhere goes on by folding its log and asking again, and ``audit`` re-derives
every decision by asking at the same place of the same log.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, get_args

from decisions import (
    closing,
    controls,
    device,
    knowledge,
    learning,
    opening,
    reading,
    rebase,
    screening,
    turns,
    verdicts,
    vetoes,
)
from decisions.due import Due
from events.projections.state import State
from events.vocabulary import Request, StateDigested

DIGEST_EVERY = 1000
REQUEST_KINDS = tuple(request.model_fields["kind"].default for request in get_args(Request))


class Rule(NamedTuple):
    """One rule of the policy. Whoever changes what it answers gives it a new version."""

    name: str
    version: int
    kinds: tuple[str, ...]
    """Of the events that it may answer with."""
    answer: Callable[[State], Due | None]


def digest(state: State) -> Due | None:
    """Record the state's digest now and then. A new version of the fold is one of this rule."""
    if state.seq - state.digested < DIGEST_EVERY:
        return None
    return Due(StateDigested(digest=state.digest()), (state.seq,))


VERDICTS = ("candidate_accepted", "candidate_rejected", "candidate_shelved")
RULES = (
    Rule("digest", 1, ("state_digested",), digest),
    Rule("vetoes.withdraw", 1, ("candidate_withdrawn",), vetoes.withdraw),
    Rule("controls.reissue", 1, (*REQUEST_KINDS, "work_abandoned"), controls.reissue),
    Rule("controls.check", 1, ("harness_checked",), controls.check),
    Rule("opening.propose", 1, ("candidate_proposed",), opening.propose),
    Rule("knowledge.offer", 1, ("fact_proposed",), knowledge.offer),
    Rule("screening.verdict", 1, ("candidate_screened",), screening.verdict),
    Rule("verdicts.verdict", 1, VERDICTS, verdicts.verdict),
    Rule("rebase.propose", 1, ("candidate_proposed",), rebase.propose),
    Rule("rebase.request", 1, ("rebase_requested",), rebase.request),
    Rule(
        "turns.proceed", 1, ("turn_assigned", "turn_dropped", "candidate_proposed"), turns.proceed
    ),
    Rule("turns.repair", 1, ("turn_assigned",), turns.repair),
    Rule("knowledge.judge", 1, ("fact_judged",), knowledge.judge),
    Rule("reading.propose", 1, ("fact_proposed",), reading.propose),
    Rule("learning.request", 1, ("learning_requested",), learning.request),
    Rule("closing.close", 1, ("search_closed",), closing.close),
    Rule(
        "closing.finish",
        1,
        ("measurement_requested", "kernel_finished", "run_finished"),
        closing.finish,
    ),
    Rule("screening.request", 1, ("screening_requested",), screening.request),
    Rule("device.next_job", 1, ("measurement_requested",), device.next_job),
    Rule("knowledge.check", 1, ("fact_check_requested",), knowledge.check),
    Rule("reading.read", 1, ("turn_assigned", "turn_dropped"), reading.read),
    Rule("turns.assign", 1, ("turn_assigned",), turns.assign),
)
"""First come verdicts on what is known, then new work; the first rule with an answer wins."""


class Answered(NamedTuple):
    """What is due, and the rule that says so."""

    rule: Rule
    due: Due


def decide(state: State, rules: Sequence[Rule] = RULES) -> Due | None:
    """Return the decision or request that is due now, or None if there is only to wait."""
    answered = first_answer(state, rules)
    return None if answered is None else answered.due


def first_answer(state: State, rules: Sequence[Rule]) -> Answered | None:
    """The first of ``rules`` that has an answer now, with its answer.

    A paused run waits where it would request work, except to issue again what was under way.
    """
    if state.start is None or state.finished or state.interrupted:
        return None
    answers = (Answered(rule, due) for rule in rules if (due := rule.answer(state)) is not None)
    first = next(answers, None)
    if state.paused and first and isinstance(first.due.event, Request):
        return first if any(seq in state.lost for seq in first.due.because) else None
    return first
