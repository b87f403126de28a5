"""Readings: what actors read from raw evidence, read again; and whether orders could be obeyed.

Like the rules of `decisions.plan` they have versions, which a run records.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple, get_args

from decisions import claims, fitting, models, replies, samples
from decisions.examination import contradictions, profile_head
from decisions.orders import refusal
from decisions.settling import NOTHING, settled
from events.campaign import Model
from events.predicates import PLACEHOLDERS, breaks, words
from events.projections.state import State
from events.vocabulary import (
    AnyEvent,
    CandidateExamined,
    Complaint,
    Draft,
    EditsReapplied,
    FactChecked,
    FactCheckRequested,
    FactLearned,
    LearningRequested,
    MeasurementRequested,
    Nothing,
    Order,
    Outcome,
    PairsMeasured,
    Predicate,
    Probe,
    ProgramsMeasured,
    RebaseRequested,
    Request,
    Review,
    RoleReplied,
    ScreeningRequested,
    Sha,
    Trial,
    TurnAssigned,
    TurnFailed,
)

ReadBlob = Callable[[Sha], bytes]
"""Reads a blob and checks its hash; raises an exception that says which blob and why."""
LIMIT = 1.0
"""Margin up to which outputs are within the tolerance."""


class Evidence(NamedTuple):
    """A reply or an order, and what it was read from."""

    event: AnyEvent
    request: Request | None
    """None for an order."""
    state: State
    """Before the event."""
    blob: ReadBlob

    def text(self, sha: Sha | None) -> str:
        """A blob as actors read it; "" for none."""
        return "" if sha is None else self.blob(sha).decode("utf-8", "replace")


class Reading(NamedTuple):
    """How events of some kinds are read. Whoever changes that gives it a new version."""

    name: str
    version: int
    kinds: tuple[str, ...]
    problems: Callable[[Evidence], Iterator[str]]


# ---- what roles say ------------------------------------------------------------------------


def _replies(evidence: Evidence) -> Iterator[str]:
    match evidence.event, evidence.request:
        case RoleReplied() as event, TurnAssigned() as request:
            yield from _reply(event, request, evidence)
        case EditsReapplied() as event, RebaseRequested() as request:
            yield from _rebased(event, request, evidence)
        case TurnFailed() as event, TurnAssigned() as request:
            yield from _spent(event, request, evidence.state)
        case _:
            pass


def _reply(event: RoleReplied, request: TurnAssigned, evidence: Evidence) -> Iterator[str]:
    parent = evidence.text(evidence.state.tree.nodes[request.parent].source)
    passage, reply = evidence.text(request.passage), evidence.text(event.reply)
    if not _says(replies.parse(request.task, reply, parent, passage), event.outcome, request):
        yield "the reply does not say what it was read as"
    if left_out(evidence.text(event.prompt)) != event.dropped:
        yield "the prompt has left out something else"
    model = evidence.state.begun.campaign.models[request.model]
    if event.provider != _provider(model):
        yield f"{request.model} has the provider {_provider(model)}, not {event.provider}"
    yield from _spent(event, request, evidence.state)


def _spent(event: RoleReplied | TurnFailed, request: TurnAssigned, state: State) -> Iterator[str]:
    n_calls, is_free = event.spent.model_calls, state.begun.campaign.models[request.model].is_free
    price = models.price(state, request.model)
    if event.spent != settled(request.reserved, event.usage, price, n_calls):
        yield "it has not cost what its tokens take"
    if is_free and (n_calls or event.usage != NOTHING):
        yield "a provider that calls nobody costs nothing"
    if isinstance(event, RoleReplied) and not is_free and not n_calls:
        yield "a model replied without a call"


def _provider(model: Model) -> str:
    """Name of who answers for a model's settings."""
    match model.provider:
        case "catalogue":
            return "catalogue"
        case "litellm":
            return f"litellm:{model.model}"
        case "command":
            return f"command:{PurePath(model.command[0]).name}"
        case "manual":
            return f"manual:{PurePath(model.folder or '').name}"
        case "recorded":
            return f"recorded:{PurePath(model.run or '').name}"


def _rebased(event: EditsReapplied, request: RebaseRequested, evidence: Evidence) -> Iterator[str]:
    parsed = replies.parse("step", evidence.text(request.reply), evidence.text(request.onto_source))
    if isinstance(parsed, replies.SourceText):
        agrees = _says(parsed, event.outcome, request)
    else:
        agrees = event.outcome == no_edits(parsed)
    if not agrees:
        yield "the edits fit their new parent otherwise than recorded"


def left_out(prompt: str) -> tuple[str, ...]:
    """What a prompt says that it has no room for; it does so before anything that agents wrote."""
    said = prompt.partition("\nLeft out for length: ")[2].partition(".\n")[0]
    return () if said == "nothing" else tuple(said.split(", "))


def no_edits(parsed: replies.Parsed) -> Complaint:
    """What is recorded of a step that gives no draft on another parent."""
    reason = parsed.reason if isinstance(parsed, Complaint) else "the reply has no edits"
    return Complaint(reason=reason)


def _says(
    parsed: replies.Parsed, recorded: Outcome, request: TurnAssigned | RebaseRequested
) -> bool:
    """Whether ``recorded`` is all that was read, but for the target's normal form of a source."""
    match parsed:
        case replies.PlanTexts():
            return recorded == parsed.designs()
        case replies.SourceText():
            return isinstance(recorded, Draft) and recorded == parsed.draft(recorded.normalized)
        case replies.AnalysisText():
            return recorded == parsed.analysis(request.kernel)
        case replies.SummaryText():
            return recorded == parsed.summary(request.kernel)
        case Review() | Complaint() | Nothing():
            return recorded == parsed


# ---- what the device measured --------------------------------------------------------------


def _samples(evidence: Evidence) -> Iterator[str]:
    try:
        match evidence.event, evidence.request:
            case PairsMeasured() as event, MeasurementRequested() as request:
                yield from _pairs(event, request, evidence.blob)
            case ProgramsMeasured() as event, MeasurementRequested() as request:
                yield from _programs(event, request, evidence.blob)
            case _:
                pass
    except ValueError as error:
        yield f"the raw samples cannot be used: {error}"


def _pairs(event: PairsMeasured, request: MeasurementRequested, blob: ReadBlob) -> Iterator[str]:
    runs = samples.decode(blob(event.samples))
    if tuple(run.arm for run in runs) != samples.schedule(request.coins):
        yield "the arms did not run in the order of the coins"
    elif samples.pairs(runs) != event.pairs:
        yield "the pairs are not the medians of the raw samples"
    if any(len(run.launches_s) != request.launches for run in runs):
        yield "a run has not as many launches as were asked for"
    if not min(event.incumbent_margin, event.candidate_margin) >= 0:
        yield "a margin below 0"
    if max(event.incumbent_margin, event.candidate_margin) > LIMIT:
        yield "an arm was outside of the tolerance, and the pairs were kept"


def _programs(
    event: ProgramsMeasured, request: MeasurementRequested, blob: ReadBlob
) -> Iterator[str]:
    runs = samples.decode(blob(event.samples))
    n_arms = 1 + len(event.times_s)
    if tuple(run.arm for run in runs) != samples.rounds(n_arms):
        yield "the arms did not run in turn"
    else:
        incumbent, *others = samples.spreads(runs, n_arms)
        if (incumbent.median, *others) != (event.incumbent_s, *event.times_s.values()):
            yield "the times are not those of the raw samples"
    if list(event.times_s) != [name for name in request.programs if name in event.times_s]:
        yield "the programs are not those that were asked for"


# ---- what screening found, and what was learned --------------------------------------------


def _examination(evidence: Evidence) -> Iterator[str]:
    match evidence.event, evidence.request:
        case CandidateExamined() as event, ScreeningRequested() as request:
            facts = evidence.state.knowledge.facts
            rules = {n: fact for n, fact in facts.items() if isinstance(fact, FactLearned)}
            yield from contradictions(event, request, rules)
            cost = event.cost
            if cost and not evidence.text(cost.profile).startswith(profile_head(cost.cycles)):
                yield "the profile is of another static cost"
        case _:
            pass


def _facts(evidence: Evidence) -> Iterator[str]:
    match evidence.event, evidence.request:
        case FactLearned() as event, LearningRequested() as request:
            yield from _fact(event, request, evidence)
        case FactChecked() as event, FactCheckRequested() as request:
            yield from _probe(event, request)
        case _:
            pass


def _fact(event: FactLearned, request: LearningRequested, evidence: Evidence) -> Iterator[str]:
    is_wider = event.topic == "rule" and not event.kernel
    if event.topic != request.topic or (event.kernel != request.kernel and not is_wider):
        yield f"nobody asked for {event.topic} of {event.kernel}"
    elif request.topic == "rule":
        yield from _rule(event, request, evidence)
    elif not _is_figure(event, request):
        yield "the figures do not say what was learned from them"


def _probe(event: FactChecked, request: FactCheckRequested) -> Iterator[str]:
    if (event.diagnostics is None, not event.signature) != (event.built, event.built):
        yield "a diagnostic without a failed build, or a failed build without one"
    if len(event.fixtures) > (len(request.fixture_seeds) if event.built else 0):
        yield "more fixtures ran than were asked for"
    if event.cycles is not None and not (event.built and request.probe.predicts == "costs"):
        yield "cycles that nobody asked for"


def _is_figure(event: FactLearned, request: LearningRequested) -> bool:
    figures = request.figures
    match request.topic:
        case "bound":
            figures = claims.bound_figures(request.figures)
            claim = claims.bound_claim(figures)
        case "microbenchmark":
            figures = fitting.costs(request.timings)
            claim = claims.costs_claim(request.microbenchmark, figures)
        case _:
            claim = claims.noise_claim(request.figures)
    said = (event.value, event.claim, event.signature, event.probe)
    return said == (figures, claim, "", None) and not (event.predicate or event.trials)


def _rule(event: FactLearned, request: LearningRequested, evidence: Evidence) -> Iterator[str]:
    if event.signature != request.signature or event.value:
        yield "the rule is about another failure"
    said = claims.rule_claim(
        event.predicate, "", event.signature, evidence.text(request.diagnostics)
    )
    if not event.claim.startswith(said.removesuffix(")")) or (
        event.predicate and event.claim != said
    ):
        yield "the failed build does not say what was learned from it"
    if event.probe is not None:
        yield from _reproducer(event.probe, request, evidence)
    if (event.predicate is None) != (not event.trials):
        yield "a predicate without trials, or trials of none"
    if event.predicate is not None:
        yield from _trials(event.predicate, event.trials, evidence)
        yield from _untried(event.trials, request, evidence.state)
        if not event.kernel and not _is_everywhere(event.predicate, request, evidence):
            yield "it is about words that not every kernel has"
    elif not event.kernel:
        yield "no rule holds for every kernel"


def _reproducer(probe: Probe, request: LearningRequested, evidence: Evidence) -> Iterator[str]:
    """The small source that is refused is what is left of the one that was."""
    own = (probe.kernel, probe.predicts, probe.signature, probe.low, probe.high)
    if own != (request.kernel, "refused", request.signature, None, None):
        yield "the reproducer is to do something else"
    lines = iter(evidence.text(request.source).splitlines())
    if not all(line in lines for line in evidence.text(probe.source).splitlines()):
        yield "the reproducer is no part of the source"


def _trials(predicate: Predicate, trials: Iterable[Trial], evidence: Evidence) -> Iterator[str]:
    for trial in trials:
        if breaks(predicate, words(evidence.text(trial.source))) != trial.breaks:
            yield f"the predicate says something else of {trial.source}"


def _is_everywhere(predicate: Predicate, request: LearningRequested, evidence: Evidence) -> bool:
    literal = {part for c in predicate.conditions for part in c.tokens} - PLACEHOLDERS
    others = [words(evidence.text(sha)) for sha in request.elsewhere]
    return bool(others) and all(literal <= {*text} for text in others)


def _untried(trials: Iterable[Trial], request: LearningRequested, state: State) -> Iterator[str]:
    """All sources that were known to be refused or to build must have been tried."""
    said = {trial.source: trial.is_refused for trial in trials}
    nodes = (state.tree.nodes[c] for c in state.tree.branches[request.kernel].nodes)
    normal = {node.source: node.normalized for node in nodes}
    bad = {normal.get(sha or "") for sha in (request.source, *request.known_bad)}
    good = {normal.get(sha) for sha in request.known_good}
    if any(said.get(sha or "") is not True for sha in bad):
        yield "a source that failed alike was not tried"
    if any(said.get(sha or "") is not False for sha in good):
        yield "a source known to build was not tried"


def _orders(evidence: Evidence) -> Iterator[str]:
    if isinstance(evidence.event, Order) and (why := refusal(evidence.state, evidence.event)):
        yield f"it cannot be obeyed: {why}"


ORDER_KINDS = tuple(order.model_fields["kind"].default for order in get_args(Order))
READINGS = (
    Reading("replies", 1, ("role_replied", "turn_failed", "edits_reapplied"), _replies),
    Reading("samples", 1, ("pairs_measured", "programs_measured"), _samples),
    Reading("examination", 1, ("candidate_examined",), _examination),
    Reading("facts", 1, ("fact_learned", "fact_checked"), _facts),
    Reading("orders", 1, ORDER_KINDS, _orders),
)
