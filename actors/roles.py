"""Roles: a turn comes in, a prompt goes to a provider, the reply is read."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from actors.messages import Answer, Command
from actors.providers.catalogue import CatalogueProvider
from actors.providers.command import CommandProvider
from actors.providers.litellm_provider import LiteLLMProvider
from actors.providers.manual import ManualProvider
from actors.providers.port import Completion, Provider, ProviderError, Question
from actors.providers.recorded import RecordedProvider
from actors.screening import sha256
from decisions.brief import Brief
from decisions.evidence import no_edits
from decisions.replies import AnalysisText, Parsed, PlanTexts, SourceText, SummaryText, parse
from decisions.settling import PROMPT_TOKENS, settled
from events.campaign import Model, RoleName
from events.vocabulary import (
    Complaint,
    Draft,
    EditsReapplied,
    Nothing,
    Outcome,
    RebaseRequested,
    Review,
    RoleReplied,
    Spend,
    TurnAssigned,
    TurnFailed,
)
from prompts.render import Prompt, render
from prompts.told import Texts
from targets.protocol import Ask, Target, TargetError


@dataclass(frozen=True)
class _Turn:
    """A command to a role, unpacked."""

    request: TurnAssigned
    brief: Brief
    texts: Texts


class RoleActor:
    """One role. It keeps nothing between turns but its providers.

    Args:
        role: who it is; a turn of another role is refused.
        target: whose catalogue, fingerprint and normal form it uses.
        providers: who answers for a model's settings; may raise `ProviderError`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        role: RoleName,
        target: Target,
        providers: Callable[[Model], Provider],
        clock: Callable[[], float],
    ) -> None:
        self._role = role
        self._target = target
        self._providers = functools.cache(providers)
        self._clock = clock
        self._toolchain: dict[str, str] | None = None

    def handle(self, command: Command) -> Answer:
        """Take one turn: answer `RoleReplied`, or `TurnFailed` when there is no reply.

        Raises:
            ValueError: the command is not a turn of this role with a brief.
        """
        if isinstance(command.request, RebaseRequested):
            return self._rebase(command.request, command)
        turn = _unpack(self._role, command)
        started_s = self._clock()
        try:
            prompt = self._prompt(turn)
            provider = self._providers(turn.brief.model)
            completion = provider.complete(Question(prompt.text, _ask(turn), turn.request))
        except TargetError as e:
            return _failed(turn, ProviderError(str(e)))
        except ProviderError as e:
            return _failed(turn, e)
        wall_s = self._clock() - started_s
        return self._replied(turn, prompt, provider.name, completion, wall_s)

    def _rebase(self, request: RebaseRequested, command: Command) -> Answer:
        """Apply a step's edits to its new parent; no model is asked."""
        reply = command.text(request.reply)
        onto = command.text(request.onto_source)
        parsed = parse("step", reply, onto)
        outcome, blobs = self._outcome(parsed, request.kernel)
        if not isinstance(outcome, Draft):
            outcome = no_edits(parsed)
        return Answer(EditsReapplied(candidate=request.candidate, outcome=outcome), blobs)

    def _prompt(self, turn: _Turn) -> Prompt:
        if self._toolchain is None:
            self._toolchain = self._target.fingerprint()
        return _worded(turn, self._toolchain)

    def _replied(
        self, turn: _Turn, prompt: Prompt, provider: str, completion: Completion, wall_s: float
    ) -> Answer:
        reply = completion.text.encode("utf-8", "replace")
        texts = turn.texts
        parsed = parse(turn.request.task, reply.decode(), texts.source, texts.passage)
        outcome, blobs = self._outcome(parsed, turn.request.kernel)
        event = RoleReplied(
            turn=turn.request.turn,
            prompt=sha256(prompt.text.encode()),
            reply=sha256(reply),
            outcome=outcome,
            provider=provider,
            template=prompt.template_sha,
            dropped=prompt.dropped,
            usage=completion.usage,
            spent=_spent(turn, completion),
            wall_s=wall_s,
        )
        return Answer(event, (prompt.text.encode(), reply, prompt.template.encode(), *blobs))

    def _outcome(self, parsed: Parsed, kernel: str) -> tuple[Outcome, tuple[bytes, ...]]:
        match parsed:
            case PlanTexts():
                return parsed.designs(), tuple(plan.plan.encode() for plan in parsed.plans)
            case SourceText():
                normalized = sha256(self._target.normalize(parsed.source).encode())
                return parsed.draft(normalized), (parsed.source.encode(),)
            case AnalysisText():
                return parsed.analysis(kernel), parsed.made.blobs()
            case SummaryText():
                return parsed.summary(kernel), parsed.made.blobs()
            case Review() | Complaint() | Nothing():
                return parsed, ()
            case _:
                assert_never(parsed)


def prompt_of(command: Command, toolchain: Mapping[str, str]) -> Prompt:
    """Word the prompt of a turn without taking it.

    Raises:
        ValueError: the command is not a turn with a brief.
    """
    if not isinstance(command.request, TurnAssigned):
        raise ValueError(f"{command.request.kind} is no turn")
    return _worded(_unpack(command.request.role, command), toolchain)


def _worded(turn: _Turn, toolchain: Mapping[str, str]) -> Prompt:
    return render(
        turn.request.role,
        turn.request.task,
        turn.brief,
        texts=turn.texts,
        toolchain=toolchain,
        limit=PROMPT_TOKENS,
    )


def providers_for(target: Target, environ: Mapping[str, str]) -> Callable[[Model], Provider]:
    """Return what builds the provider of a model's settings.

    Args:
        target: its catalogue answers for the provider ``catalogue``.
        environ: where API keys are looked up, by the names that the settings give.
    """

    def provider(model: Model) -> Provider:
        match model.provider:
            case "catalogue":
                return CatalogueProvider(target.catalogue)
            case "command":
                return CommandProvider(model.command, model.timeout_s)
            case "litellm":
                return LiteLLMProvider(model, _key(model, environ))
            case "manual":
                return ManualProvider(Path(model.folder or ""), model.timeout_s)
            case "recorded":
                return RecordedProvider(Path(model.run or ""))
            case _:
                assert_never(model.provider)

    return provider


def _key(model: Model, environ: Mapping[str, str]) -> str | None:
    if model.api_key_env is None:
        return None
    try:
        return environ[model.api_key_env]
    except KeyError:
        reason = f"no API key: set the environment variable {model.api_key_env}"
        raise ProviderError(reason) from None


def _unpack(role: RoleName, command: Command) -> _Turn:
    request, brief = command.request, command.brief
    if not isinstance(request, TurnAssigned) or request.role != role or brief is None:
        raise ValueError(f"the {role} takes its own turns with a brief, not {request.kind}")
    texts = Texts(
        source=command.text(brief.incumbent_source),
        profile=command.text(brief.incumbent_profile),
        plan=command.text(request.plan),
        document=request.document,
        passage=command.text(request.passage),
        draft=command.text(request.draft),
        diagnostics=command.text(request.diagnostics),
        complaint=request.complaint or "",
        previous=command.text(request.previous),
    )
    return _Turn(request, brief, texts)


def _ask(turn: _Turn) -> Ask:
    return Ask(
        kernel=turn.brief.kernel,
        task=turn.request.task,
        incumbent_source=turn.texts.source,
        plan=turn.texts.plan,
        tried=frozenset(turn.brief.tried),
        bottleneck=turn.brief.bottleneck,
        seed=turn.brief.seed,
    )


def _failed(turn: _Turn, error: ProviderError) -> Answer:
    failed = TurnFailed(
        turn=turn.request.turn, reason=error.reason, usage=error.usage, spent=_spent(turn, error)
    )
    return Answer(failed)


def _spent(turn: _Turn, ended: Completion | ProviderError) -> Spend:
    return settled(turn.request.reserved, ended.usage, turn.brief.price, ended.n_calls)
