"""What is believed of a fact: which probe is run next, and the verdict on what it did."""

from collections.abc import Mapping

from decisions import device
from decisions.due import Due
from decisions.examination import incorrect
from decisions.screening import fixture_seeds
from events.projections.state import State
from events.vocabulary import (
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactState,
    Prediction,
    Probe,
    Topic,
)

EFFORT: Mapping[Prediction, int] = {"refused": 0, "builds": 1, "costs": 2, "computes": 3}
"""Order of what probes take: a refusal comes before the compiler is through."""


def offer(state: State) -> Due | None:
    """Let the next claim of another run be a claim of this one: nothing of it was seen here."""
    offers = state.knowledge.offers
    return Due(offers[0], (0,)) if offers else None


def check(state: State) -> Due | None:
    """Run the next probe: the least effort first, then the fact that was used most."""
    knowledge = state.knowledge
    if state.closed or any(isinstance(r, FactCheckRequested) for r in state.pending.values()):
        return None
    if device.must_be_quiet(state):
        return None
    probes = {n: probe for n in knowledge.waiting if (probe := knowledge.facts[n].probe)}
    if not probes:
        return None
    number = min(probes, key=lambda n: (EFFORT[probes[n].predicts], -knowledge.uses.get(n, 0), n))
    request = FactCheckRequested(
        fact=number,
        probe=probes[number],
        fixture_seeds=fixture_seeds(state) if probes[number].predicts == "computes" else (),
        reasons=f"f{number} is {knowledge.states[number]}",
    )
    return Due(request, (knowledge.records[number],))


def judge(state: State) -> Due | None:
    """Judge what has new evidence: a probe that ran, the trials of a rule, a source that builds."""
    return _checked(state) or _learned(state) or _disproved(state)


def _checked(state: State) -> Due | None:
    for number, (seq, checked) in state.knowledge.checked.items():
        fact = state.knowledge.facts[number]
        if fact.probe is None:
            raise LookupError(f"f{number} was checked without a probe")
        believed, reason = verdict(fact.topic, fact.probe, checked)
        return Due(FactJudged(fact=number, state=believed, reason=reason), (seq,))
    return None


def _learned(state: State) -> Due | None:
    for number, rule in state.knowledge.learned.items():
        believed, reason = admission(rule)
        judged = FactJudged(fact=number, state=believed, reason=reason)
        return Due(judged, (state.knowledge.records[number],))
    return None


def _disproved(state: State) -> Due | None:
    for number, (seq, candidate) in state.knowledge.disproved.items():
        reason = f"c{candidate} breaks it and builds"
        return Due(FactJudged(fact=number, state="refuted", reason=reason), (seq,))
    return None


def admission(rule: FactLearned) -> tuple[FactState, str]:
    """Judge a new rule by its trials: it needs some of both kinds, and may be wrong on none."""
    if rule.predicate is None:
        again = rule.probe is not None
        return ("confirmed", "it failed again") if again else ("refuted", "it did not fail again")
    wrong = sum(trial.breaks != trial.is_refused for trial in rule.trials)
    n_bad = sum(trial.is_refused for trial in rule.trials)
    n_good = len(rule.trials) - n_bad
    if wrong or not n_bad or not n_good:
        return "proposed", f"it is wrong on {wrong} of {n_bad} refused and {n_good} other sources"
    return "confirmed", f"it refuses {n_bad} refused sources and none of {n_good} others"


def verdict(topic: Topic, probe: Probe, checked: FactChecked) -> tuple[FactState, str]:
    """Compare what a probe did with what it was to do.

    Returns:
        The state of its fact, and the reason in words; ``proposed`` if the probe says nothing.
    """
    if probe.predicts == "refused":
        return _refused(topic, probe, checked)
    if not checked.built:
        believed: FactState = "refuted" if probe.predicts == "builds" else "proposed"
        return believed, f"its probe does not build: {checked.signature}"
    match probe.predicts:
        case "builds":
            return "confirmed", "its probe builds"
        case "computes":
            wrong = incorrect(checked.fixtures)
            return ("refuted", wrong) if wrong else ("confirmed", "its probe is correct")
        case "costs":
            return _costs(probe, checked.cycles)


def _refused(topic: Topic, probe: Probe, checked: FactChecked) -> tuple[FactState, str]:
    if checked.built:
        return "refuted", "its probe builds"
    if checked.signature.startswith(probe.signature):
        return "confirmed", f"its probe is refused: {checked.signature}"
    # A rule is about what is refused, a document's claim about why.
    believed: FactState = "confirmed" if topic == "rule" else "proposed"
    return believed, f"its probe is refused with other words: {checked.signature}"


def _costs(probe: Probe, cycles: int | None) -> tuple[FactState, str]:
    if cycles is None:
        return "proposed", "this target has no cost model"
    too_few = probe.low is not None and cycles < probe.low
    too_many = probe.high is not None and cycles > probe.high
    return "refuted" if too_few or too_many else "confirmed", f"its probe takes {cycles} cycles"
