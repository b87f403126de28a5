"""The knowledge keeper: evidence comes in, a fact with its claim goes out."""

from typing import assert_never

from actors.messages import Answer, Command
from decisions.claims import (
    bound_claim,
    bound_figures,
    costs_claim,
    noise_claim,
    rule_claim,
    toolchain_digest,
)
from decisions.fitting import costs
from events.vocabulary import FactLearned, LearningRequested, Sha
from knowledge.rules import learn
from targets.protocol import Target


class KeeperActor:
    """Words what the evidence says and derives legality rules; it keeps nothing itself.

    Args:
        target: whose normal form and fingerprint it uses.
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    def handle(self, command: Command) -> Answer:
        """Answer `FactLearned`.

        Raises:
            ValueError: the command does not ask to learn, its bound has no figures, or its timings
                do not tell things apart.
            KeyError: a figure or a blob that the topic needs is missing.
            TargetError: the target cannot be used here.
        """
        request = command.request
        if not isinstance(request, LearningRequested):
            raise ValueError(f"the knowledge keeper learns, it does not take {request.kind}")
        match request.topic:
            case "bound":
                figures = bound_figures(request.figures)
                fact = self._measured(request, figures, bound_claim(figures))
            case "noise":
                fact = self._measured(request, request.figures, noise_claim(request.figures))
            case "microbenchmark":
                found = costs(request.timings)
                fact = self._measured(request, found, costs_claim(request.microbenchmark, found))
            case "rule":
                fact = self._rule(request, command)
            case _:
                assert_never(request.topic)
        return Answer(fact)

    def _measured(
        self, request: LearningRequested, figures: dict[str, float], claim: str
    ) -> FactLearned:
        return FactLearned(
            kernel=request.kernel,
            topic=request.topic,
            claim=claim,
            value=figures,
            toolchain=self._toolchain(),
        )

    def _rule(self, request: LearningRequested, command: Command) -> FactLearned:
        def text(sha: Sha | None) -> str:
            return "" if sha is None else command.blobs[sha].decode("utf-8", "replace")

        normalize = self._target.normalize
        known_good = [normalize(text(good)) for good in request.known_good]
        snippet = normalize(request.snippet)
        derived = learn(
            snippet, normalize(text(request.source)), known_good, certain=request.certain
        )
        return FactLearned(
            kernel=request.kernel,
            topic="rule",
            claim=rule_claim(
                derived.snippet,
                derived.doubt,
                snippet,
                request.signature,
                text(request.diagnostics),
            ),
            signature=request.signature,
            snippet=derived.snippet,
            toolchain=self._toolchain(),
        )

    def _toolchain(self) -> str:
        return toolchain_digest(self._target.fingerprint())
