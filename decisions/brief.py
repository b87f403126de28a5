"""What a role is told: the part of the state that its prompt is made of."""

from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from decisions import models
from decisions.room import designs_left
from events.campaign import Model
from events.projections.knowledge import BELIEF
from events.projections.state import State
from events.vocabulary import CandidateId, DesignPlan, FactState, Price, Sha, TurnAssigned


@dataclass(frozen=True)
class Lesson:
    """An earlier candidate of the kernel and what became of it."""

    candidate: CandidateId
    form: str
    hypothesis: str
    verdict: str
    """For people: ``accepted``, ``refused at build: ...``, ``slower``, ``shelved: ...``."""
    effect: float | None
    """Log-percent against the best version of its time; negative is faster."""


class Known(NamedTuple):
    """A fact as a prompt shows it."""

    name: str
    """What a reply cites."""
    claim: str
    state: FactState
    is_rule: bool
    """Whether screening refuses what breaks it, whoever knows of it."""
    uses: int
    """Candidates that cited it."""


@dataclass(frozen=True)
class Brief:
    """Everything that a role's prompt may say, besides the texts named by hash."""

    kernel: str
    task: str
    """The kernel's card."""
    incumbent: CandidateId
    incumbent_source: Sha
    incumbent_profile: Sha | None
    """Where its static cycles go; None if the target has no cost model."""
    speedup: float | None
    """Of the best version over the baseline, as claimed by its accepts."""
    time_over_bound: float | None
    bottleneck: str
    """The analyst's words on this incumbent; "" before there are any."""
    facts: tuple[Known, ...]
    """What is believed first, then what is not checked, then what is refuted."""
    hints: tuple[tuple[str, str], ...]
    """``(hint id, text)`` from the operator; ids as of facts."""
    lessons: tuple[Lesson, ...]
    tried: tuple[str, ...]
    """Catalogue moves already proposed."""
    model: Model
    price: Price
    seed: int
    n_designs: int = 0
    """Architect: designs that there is room for."""
    design: DesignPlan | None = None
    """Implementer and reviewer: the design that the source is of."""
    claim: str = ""
    """Reviewer: the draft's hypothesis."""
    refusal: str = ""
    """Implementer: why screening refused the source that it is to repair."""


N_LESSONS = 40
"""Latest lessons that a brief holds."""
N_RULES = 40
"""Latest facts from failed builds that a brief holds; screening applies the rules all the same."""


def brief(state: State, turn: TurnAssigned) -> Brief:
    """Put together what the role of ``turn`` may know."""
    start, tree, ledger = state.begun, state.tree, state.ledger.of(turn.kernel)
    parent = tree.nodes[turn.parent]
    analysis = state.desk.of(turn.kernel).analyses.get(turn.parent)
    thread = state.desk.threads.get(turn.thread)
    return Brief(
        kernel=turn.kernel,
        task=start.cards[turn.kernel].task,
        incumbent=turn.parent,
        incumbent_source=parent.source,
        incumbent_profile=parent.cost.profile if parent.cost else None,
        speedup=tree.speedup(turn.parent),
        time_over_bound=ledger.time_over_bound if ledger.bound_of == turn.parent else None,
        bottleneck=f"{analysis.bottleneck} {analysis.advice}".strip() if analysis else "",
        facts=_facts(state, turn.kernel),
        hints=tuple((f"h{n}", text) for n, text in state.desk.of(turn.kernel).hints.items()),
        lessons=_lessons(state, turn.kernel),
        tried=_tried(state, turn),
        model=start.campaign.models[turn.model],
        price=models.price(state, turn.model),
        seed=start.campaign.seed,
        n_designs=1 + designs_left(state, turn.kernel),
        design=thread.design if thread else None,
        claim=thread.draft.hypothesis if thread and thread.draft else "",
        refusal=tree.nodes[turn.repairs].reason if turn.repairs else "",
    )


def _facts(state: State, kernel: str) -> tuple[Known, ...]:
    knowledge = state.knowledge
    facts = knowledge.of(kernel)
    rules = [n for n, fact in facts.items() if fact.topic == "rule"]
    hidden = set(rules[:-N_RULES])
    told = [
        Known(f"f{n}", f.claim, knowledge.states[n], f.topic == "rule", knowledge.uses.get(n, 0))
        for n, f in facts.items()
        if n not in hidden
    ]
    return tuple(sorted(told, key=lambda known: BELIEF.index(known.state)))


def _lessons(state: State, kernel: str) -> tuple[Lesson, ...]:
    nodes = (state.tree.nodes[c] for c in reversed(state.tree.branches[kernel].nodes))
    decided = (n for n in nodes if n.is_search and n.decided is not None and n.reason)
    lessons = [
        Lesson(n.candidate, n.form, n.hypothesis, f"{n.status}: {n.reason}", n.effect)
        for n in islice(decided, N_LESSONS)
    ]
    return tuple(reversed(lessons))


def _tried(state: State, turn: TurnAssigned) -> tuple[str, ...]:
    desk = state.desk.of(turn.kernel)
    return tuple(desk.steps.get(turn.parent, ()) if turn.task == "step" else desk.designs)
