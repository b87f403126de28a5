"""What the stages of screening say of what they found: workers report by it, audit redoes it."""

from collections.abc import Iterator, Mapping, Sequence

from events.vocabulary import (
    CandidateExamined,
    FactLearned,
    FixtureReport,
    ScreeningRequested,
    Stage,
    StageReport,
)

STAGES: tuple[Stage, ...] = ("duplicate", "rule", "build", "correctness")
"""Cheapest first; the first that fails is the last that runs."""


def duplicate(request: ScreeningRequested) -> str:
    """Why the first stage refuses a candidate; "" if it does not."""
    return "" if request.twin is None else f"the same source as c{request.twin}"


def breach(
    broken: Sequence[int], rules: Mapping[int, FactLearned], request: ScreeningRequested
) -> str:
    """Why the second stage refuses a candidate that breaks rules; "" if it does not."""
    refusing = next((n for n in broken if n not in request.spared_by), None)
    return "" if refusing is None else f"breaks f{refusing}: {rules[refusing].signature}"


def incorrect(fixtures: Sequence[FixtureReport]) -> str:
    """Why the last stage refuses a candidate; "" if every fixture is within the tolerance."""
    for fixture in fixtures:
        if fixture.detail:
            return fixture.detail
        if fixture.margin is None:
            return "no outputs"
        if fixture.margin > 1.0:
            return f"error {fixture.margin:.3g} of the tolerance"
    return ""


def profile_head(cycles: int) -> str:
    """How the profile of a schedule with this makespan begins."""
    return f"makespan {cycles:,} cycles, "


def contradictions(
    event: CandidateExamined, request: ScreeningRequested, rules: Mapping[int, FactLearned]
) -> Iterator[str]:
    """Say what of an examination cannot be so, whatever was built and run.

    Args:
        event: the evidence.
        request: what it answers.
        rules: in force when it came, by number of the fact.
    """
    if any(n not in rules or rules[n].predicate is None for n in event.breaks):
        yield "it breaks what is no rule"
        return
    n_ran = len(event.stages)
    if tuple(report.stage for report in event.stages) != STAGES[:n_ran] or not n_ran:
        yield "the stages did not run in their order"
        return
    passed = [report.passed for report in event.stages]
    if passed != [*(True for _ in passed[1:]), n_ran == len(STAGES) and passed[-1]]:
        yield "the stages do not end with the first that failed"
    if event.breaks and n_ran < len(STAGES[:2]):
        yield "it was held against rules before their stage"
    for report in event.stages:
        if not _fits(report, event, request, rules):
            yield f"the stage {report.stage} does not say what was found"
    yield from _fixtures(event, request, ran=n_ran == len(STAGES), passed=all(passed))
    if event.cost is not None and not all(passed):
        yield "a static cost of what was refused"
    yield from _build(event)


def _fixtures(
    event: CandidateExamined, request: ScreeningRequested, *, ran: bool, passed: bool
) -> Iterator[str]:
    n_wanted = len(request.fixture_seeds)
    if len(event.fixtures) > (n_wanted if ran else 0):
        yield "more fixtures ran than were asked for"
    if passed and len(event.fixtures) < n_wanted:
        yield "it passed on fewer fixtures than were asked for"
    if incorrect(event.fixtures[:-1]):
        yield "a fixture ran after one that had failed"


def _fits(
    report: StageReport,
    event: CandidateExamined,
    request: ScreeningRequested,
    rules: Mapping[int, FactLearned],
) -> bool:
    if report.passed == bool(report.detail):
        return False
    match report.stage:
        case "duplicate":
            return report.detail == duplicate(request)
        case "rule":
            return report.detail == breach(event.breaks, rules, request)
        case "build":
            return report.detail == (event.signature or "")
        case "correctness":
            return report.detail == incorrect(event.fixtures)


def _build(event: CandidateExamined) -> Iterator[str]:
    """A build that ran gives an artifact, or a diagnostic with its signature."""
    build = next((report for report in event.stages if report.stage == "build"), None)
    if (event.artifact is not None) != (build is not None and build.passed):
        yield "an artifact without a build, or a build without one"
    failed = build is not None and not build.passed
    if (event.signature is not None, event.diagnostics is not None) != (failed, failed):
        yield "a diagnostic without a failed build, or a failed build without one"
