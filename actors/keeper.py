"""The knowledge keeper: evidence comes in, a fact with its claim goes out; probes are run."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from actors.messages import Answer, Command
from actors.screening import reports, sha256
from decisions.claims import (
    bound_claim,
    bound_figures,
    costs_claim,
    noise_claim,
    rule_claim,
)
from decisions.fitting import costs
from events.predicates import breaks, words
from events.toolchain import toolchain_digest
from events.vocabulary import (
    FactChecked,
    FactCheckRequested,
    FactLearned,
    LearningRequested,
    Predicate,
    Probe,
    Trial,
)
from knowledge.rules import Failing, Tried, learn
from targets.protocol import BuildFailed, CostModel, FixtureResult, Target


class KeeperActor:
    """Words what the evidence says, derives legality rules, runs probes; it keeps nothing itself.

    Args:
        target: what the facts are about.
        clock: monotonic seconds.
    """

    def __init__(self, target: Target, clock: Callable[[], float]) -> None:
        self._target, self._clock = target, clock

    def handle(self, command: Command) -> Answer:
        """Answer `FactLearned` or `FactChecked`.

        Raises:
            ValueError: the command asks for neither, its bound has no figures, or its timings do
                not tell things apart.
            KeyError: a figure or a blob that the topic needs is missing.
            TargetError: the target cannot be used here.
        """
        match command.request:
            case LearningRequested() as request:
                return self._learn(request, command)
            case FactCheckRequested() as request:
                return self._check(request, command)
            case request:
                raise ValueError(f"the knowledge keeper does not take {request.kind}")

    def _learn(self, request: LearningRequested, command: Command) -> Answer:
        match request.topic:
            case "bound":
                figures = bound_figures(request.figures)
                return self._measured(request, figures, bound_claim(figures))
            case "noise":
                return self._measured(request, request.figures, noise_claim(request.figures))
            case "microbenchmark":
                found = costs(request.timings)
                return self._measured(request, found, costs_claim(request.microbenchmark, found))
            case "document" | "claim":
                raise ValueError("what somebody says is proposed, not learned")
            case "rule":
                return self._rule(request, command)
            case _:
                assert_never(request.topic)

    def _check(self, request: FactCheckRequested, command: Command) -> Answer:
        """Build a probe, and run it on fixtures if there are seeds for them."""
        began = self._clock()
        probe = request.probe
        source = command.text(probe.source)
        built = self._target.build(probe.kernel, source)
        signature, diagnostics, cycles = "", None, None
        results: tuple[FixtureResult, ...] = ()
        if isinstance(built, BuildFailed):
            signature, diagnostics = built.signature, built.diagnostics.encode()
        elif request.fixture_seeds:
            results = self._target.check(probe.kernel, built.artifact, request.fixture_seeds)
        elif probe.predicts == "costs" and isinstance(self._target, CostModel):
            cycles = self._target.cost(probe.kernel, built.artifact).cycles
        event = FactChecked(
            fact=request.fact,
            built=not isinstance(built, BuildFailed),
            signature=signature,
            diagnostics=sha256(diagnostics) if diagnostics is not None else None,
            fixtures=reports(results),
            cycles=cycles,
            wall_s=self._clock() - began,
            toolchain=self._toolchain(),
        )
        return Answer(event, (diagnostics,) if diagnostics is not None else ())

    def _measured(
        self, request: LearningRequested, figures: dict[str, float], claim: str
    ) -> Answer:
        event = FactLearned(
            kernel=request.kernel,
            topic=request.topic,
            claim=claim,
            value=figures,
            toolchain=self._toolchain(),
        )
        return Answer(event)

    def _rule(self, request: LearningRequested, command: Command) -> Answer:
        """Look for a predicate by experiments; its trials go into the record."""
        text = command.text
        failing = Failing(
            request.signature,
            failures=[text(sha) for sha in (request.source, *request.known_bad)],
            known_good=[text(sha) for sha in request.known_good],
            elsewhere=[text(sha) for sha in request.elsewhere],
            likely=request.likely,
        )
        refusal = partial(self._refusal, request.kernel)
        derived = learn(failing, refusal, self._target.normalize)
        trials = dict(self._trial(derived.predicate, tried) for tried in derived.trials)
        small = derived.reproducer.encode()
        probe = Probe(
            kernel=request.kernel,
            source=sha256(small),
            predicts="refused",
            signature=request.signature,
        )
        event = FactLearned(
            kernel="" if derived.is_general else request.kernel,
            topic="rule",
            claim=rule_claim(
                derived.predicate, derived.doubt, request.signature, text(request.diagnostics)
            ),
            signature=request.signature,
            predicate=derived.predicate,
            trials=tuple(trials),
            n_builds=derived.n_builds,
            probe=probe if small else None,
            toolchain=self._toolchain(),
        )
        return Answer(event, tuple(dict.fromkeys((*trials.values(), *((small,) if small else ())))))

    def _trial(self, predicate: Predicate | None, tried: Tried) -> tuple[Trial, bytes]:
        """What the predicate says of a source, with the source's normal form."""
        normal = self._target.normalize(tried.source)
        met = predicate is not None and breaks(predicate, words(normal))
        data = normal.encode()
        return Trial(source=sha256(data), breaks=met, is_refused=tried.is_refused), data

    def _refusal(self, kernel: str, source: str) -> BuildFailed | None:
        built = self._target.build(kernel, source)
        return built if isinstance(built, BuildFailed) else None

    def _toolchain(self) -> str:
        return toolchain_digest(self._target.fingerprint())
