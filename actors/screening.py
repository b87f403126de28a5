"""A worker of the screening pool: the cheap checks of one candidate, cheapest first."""

import hashlib
from collections.abc import Callable, Iterable, Mapping

from actors.messages import Answer, Command
from decisions.examination import STAGES, breach, duplicate, incorrect
from events.predicates import breaks, words
from events.toolchain import toolchain_digest
from events.vocabulary import (
    CandidateExamined,
    FactLearned,
    FixtureReport,
    ScreeningRequested,
    Sha,
    StageReport,
    StaticCost,
)
from targets.profiler.breakdown import profile
from targets.profiler.schedule import read
from targets.profiler.text import text
from targets.protocol import BuildFailed, Cost, CostModel, FixtureResult, Target


def sha256(data: bytes) -> Sha:
    """Name of a blob."""
    return hashlib.sha256(data).hexdigest()


def reports(results: Iterable[FixtureResult]) -> tuple[FixtureReport, ...]:
    """What a target found, as it is recorded."""
    return tuple(
        FixtureReport(fixture=r.fixture, margin=r.margin, detail=r.detail) for r in results
    )


def told(cost: Cost) -> bytes:
    """Where the cycles of a static cost go, as it is recorded."""
    schedule = read(cost.schedule, bytes_of=cost.bytes_of, sizes=cost.sizes)
    return text(profile(schedule)).encode()


class ScreeningWorker:
    """Examines candidates one at a time and reports evidence; it decides nothing."""

    def __init__(self, target: Target, clock: Callable[[], float]) -> None:
        self._target, self._clock = target, clock

    def handle(self, command: Command) -> Answer:
        """Run the stages in order until one fails."""
        request = command.request
        if not isinstance(request, ScreeningRequested):
            raise TypeError(f"a screening worker takes no {request.kind}")
        examination = _Examination(self._target, self._clock, request, command.rules)
        examination.run(command.text(request.source))
        return examination.answer()


class _Examination:
    """The evidence of one candidate, as it comes in."""

    def __init__(
        self,
        target: Target,
        clock: Callable[[], float],
        request: ScreeningRequested,
        rules: Mapping[int, FactLearned],
    ) -> None:
        self._target, self._clock, self._request, self._rules = target, clock, request, rules
        self._stages: list[StageReport] = []
        self._fixtures: tuple[FixtureReport, ...] = ()
        self._failure: BuildFailed | None = None
        self._artifact: bytes | None = None
        self._breaks: tuple[int, ...] = ()
        self._cost: StaticCost | None = None
        self._profile: bytes | None = None

    def run(self, source: str) -> None:
        """Examine until a stage fails."""
        stages = (self._duplicate, self._rule, self._build, self._correctness)
        for stage, examine in zip(STAGES, stages, strict=True):
            began = self._clock()
            failure = examine(source)
            took = self._clock() - began
            passed = not failure
            report = StageReport(stage=stage, passed=passed, detail=failure, wall_s=took)
            self._stages.append(report)
            if failure:
                return
        self._estimate()

    def answer(self) -> Answer:
        """Put the evidence into one reply."""
        diagnostics = self._failure.diagnostics.encode() if self._failure else None
        made = (self._artifact, diagnostics, self._profile)
        blobs = [data for data in made if data is not None]
        event = CandidateExamined(
            candidate=self._request.candidate,
            stages=tuple(self._stages),
            fixtures=self._fixtures,
            artifact=sha256(self._artifact) if self._artifact is not None else None,
            diagnostics=sha256(diagnostics) if diagnostics is not None else None,
            signature=self._failure.signature if self._failure else None,
            breaks=self._breaks,
            cost=self._cost,
            toolchain=toolchain_digest(self._target.fingerprint()),
        )
        return Answer(event, tuple(blobs))

    def _duplicate(self, source: str) -> str:
        return duplicate(self._request)

    def _rule(self, source: str) -> str:
        text = words(self._target.normalize(source))
        self._breaks = tuple(
            n for n, rule in self._rules.items() if rule.predicate and breaks(rule.predicate, text)
        )
        return breach(self._breaks, self._rules, self._request)

    def _build(self, source: str) -> str:
        built = self._target.build(self._request.kernel, source)
        if isinstance(built, BuildFailed):
            self._failure = built
            return built.signature
        self._artifact = built.artifact
        return ""

    def _correctness(self, source: str) -> str:
        artifact = self._artifact or b""
        seeds = self._request.fixture_seeds
        results = self._target.check(self._request.kernel, artifact, seeds)
        self._fixtures = reports(results)
        return incorrect(self._fixtures)

    def _estimate(self) -> None:
        """Ask the cost model, where the target has one; no answer of it is a failure."""
        if isinstance(self._target, CostModel):
            cost = self._target.cost(self._request.kernel, self._artifact or b"")
            self._profile = told(cost)
            self._cost = StaticCost(cycles=cost.cycles, profile=sha256(self._profile))
