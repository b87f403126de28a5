"""A role turns a command into one answer, whatever the provider does."""

import hashlib
import pickle
from collections.abc import Callable, Mapping
from typing import cast

import pytest

from actors.messages import Answer, Command
from actors.providers.port import Completion, Provider, ProviderError, Question
from actors.roles import RoleActor, providers_for
from decisions.brief import Brief
from decisions.settling import FREE, NOTHING
from events.campaign import Model, RoleName
from events.vocabulary import (
    Complaint,
    DesignPlan,
    Designs,
    Draft,
    Price,
    Review,
    RoleReplied,
    Spend,
    TurnAssigned,
    TurnFailed,
    Usage,
)
from targets.protocol import Ask, Target, TargetError

RESERVED = Spend(model_calls=1, tokens=900, cost_usd=0.5)
PRICE = Price(usd_per_million_in=3.0, usd_per_million_out=10.0, source="campaign")


LITELLM = Model(provider="litellm", model="openai/x")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class EchoCatalogue:
    """Answers by the task, from what it is asked."""

    def reply(self, ask: Ask) -> str:
        """Answer in the reply format."""
        why = f"<hypothesis>{ask.kernel} {sorted(ask.tried)} {ask.seed}</hypothesis>"
        if ask.task == "design":
            return f"<design>{why}<move>design:a</move><plan>Rows.</plan></design>"
        return why + {
            "implement": f"<source>\n// {ask.plan}\nint  a;\n</source>",
            "step": "<edit><search>best</search><replace>better</replace></edit>",
            "review": "<review>go</review>",
        }.get(ask.task, "")


class TextTarget:
    """A target without a device: normal form, fingerprint and catalogue only."""

    catalogue = EchoCatalogue()
    broken = False

    def fingerprint(self) -> dict[str, str]:
        """Name the toolchain."""
        if self.broken:
            raise TargetError("no compiler; install one")
        return {"cc": "13"}

    def normalize(self, source: str) -> str:
        """Remove spacing."""
        return "".join(source.split())


class ScriptedProvider:
    """Gives one reply, or raises one error."""

    name = "scripted"

    def __init__(self, outcome: Completion | ProviderError) -> None:
        self.outcome = outcome
        self.prompts: list[str] = []

    def complete(self, question: Question) -> Completion:
        """Note the prompt; give the outcome."""
        self.prompts.append(question.prompt)
        if isinstance(self.outcome, ProviderError):
            raise self.outcome
        return self.outcome


def command(role: RoleName, task: str, texts: Mapping[str, str], model: Model) -> Command:
    """A turn whose named texts (plan, draft, previous) come as blobs; ``complaint`` inline."""
    named = {"source": "int best;\n", **texts}
    complaint = named.pop("complaint", None)
    blobs = {sha(text.encode()): text.encode() for text in named.values()}
    shas = {name: sha(text.encode()) for name, text in named.items()}
    source = shas.pop("source")
    request = TurnAssigned.model_validate(
        {
            "turn": 4,
            "kernel": "qkv",
            "role": role,
            "task": task,
            "nth": 1,
            "model": "default",
            "parent": 1,
            "thread": 4,
            "complaint": complaint,
            "reserved": RESERVED,
            "reasons": "",
            **shas,
        }
    )
    price = FREE if model.is_free else PRICE
    brief = Brief(
        "qkv", "task", 1, source, None, None, None, "", (), (), (), ("m",), model, price, 9
    )
    return Command(11, 11, request, blobs, brief)


def turn(
    role: RoleName,
    task: str,
    provider: Provider | None = None,
    model: Model | None = None,
    target: TextTarget | None = None,
    **texts: str,
) -> Answer:
    ticks = iter([10.0, 12.5])
    whole = cast("Target", target or TextTarget())
    providers: Callable[[Model], Provider] = providers_for(whole, {})
    if provider is not None:
        chosen = provider
        providers = lambda _: chosen  # noqa: E731
    actor = RoleActor(role, whole, providers, lambda: next(ticks))
    return actor.handle(command(role, task, texts, model or Model()))


def replied(answer: Answer) -> RoleReplied:
    assert isinstance(answer.event, RoleReplied), answer.event
    stored = {sha(blob) for blob in answer.blobs}
    assert {answer.event.prompt, answer.event.reply, answer.event.template} <= stored
    return answer.event


def test_a_plan_is_recorded_by_hash_with_its_bytes() -> None:
    """Every hash that the event names comes with its blob."""
    answer = turn("architect", "design")
    event = replied(answer)

    plan = DesignPlan(hypothesis="qkv ['m'] 9", plan=sha(b"Rows."), move="design:a")
    assert event.outcome == Designs(designs=(plan,))
    assert b"Rows." in answer.blobs
    assert (event.turn, event.provider, event.spent, event.wall_s) == (
        4,
        "catalogue",
        Spend(),
        2.5,
    )


def test_a_draft_carries_the_hash_of_its_normal_form() -> None:
    """Equal normal forms are duplicates, whatever the comments."""
    answer = turn("implementer", "implement", plan="Rows.")
    outcome = replied(answer).outcome

    assert isinstance(outcome, Draft)
    assert outcome.source == sha(b"// Rows.\nint  a;\n")
    assert outcome.normalized == sha(b"//Rows.inta;")
    assert b"// Rows.\nint  a;\n" in answer.blobs


def test_a_step_is_applied_to_the_best_version() -> None:
    """Edits become a whole source, so that a candidate stands by itself."""
    answer = turn("optimizer", "step")

    assert b"int better;\n" in answer.blobs


def test_a_reply_that_cannot_be_used_is_kept_whole_with_the_complaint() -> None:
    """The repair turn shows both."""
    provider = ScriptedProvider(Completion("hm", Usage(tokens_in=500, tokens_out=20), 1))
    answer = turn("reviewer", "review", provider, LITELLM, draft="int d;")
    event = replied(answer)

    assert isinstance(event.outcome, Complaint)
    assert b"hm" in answer.blobs
    assert event.spent == Spend(model_calls=1, tokens=520, cost_usd=0.0017)
    assert "int d;" in provider.prompts[0]


def test_a_repair_shows_the_complaint_and_the_reply_it_is_about() -> None:
    """The model has no memory of its last turn."""
    provider = ScriptedProvider(Completion("<review>stop</review><reason>r</reason>", None, 1))
    answer = turn("reviewer", "review", provider, draft="d", complaint="no reason", previous="OLD")

    assert replied(answer).outcome == Review(go=False, reason="r")
    assert "no reason" in provider.prompts[0]
    assert "OLD" in provider.prompts[0]


def test_a_provider_without_a_reply_fails_the_turn_and_nothing_else() -> None:
    """A refused call costs a call and no tokens."""
    answer = turn("analyst", "analyse", ScriptedProvider(ProviderError("503", 3)))

    assert answer.event == TurnFailed(
        turn=4, reason="503", usage=NOTHING, spent=Spend(model_calls=3)
    )
    assert answer.blobs == ()


def test_an_abandoned_call_costs_what_was_reserved_for_it() -> None:
    """Nobody knows whether it was billed, so the budget assumes that it was."""
    answer = turn("analyst", "analyse", ScriptedProvider(ProviderError("late", 2, usage=None)))

    spent = RESERVED.model_copy(update={"model_calls": 2})
    assert answer.event == TurnFailed(turn=4, reason="late", usage=None, spent=spent)


def test_a_reply_that_nobody_counts_costs_what_was_reserved() -> None:
    """A command says nothing of what it took."""
    provider = ScriptedProvider(Completion("hm", None, 1))
    event = replied(turn("reviewer", "review", provider, LITELLM, draft="int d;"))

    assert (event.usage, event.spent) == (None, RESERVED)


def test_an_unusable_reply_that_was_counted_costs_its_tokens() -> None:
    """It was paid for all the same."""
    error = ProviderError("cut off", 1, Usage(tokens_in=500, tokens_out=8000))
    answer = turn("reviewer", "review", ScriptedProvider(error), LITELLM, draft="int d;")

    assert isinstance(answer.event, TurnFailed)
    assert answer.event.spent == Spend(model_calls=1, tokens=8500, cost_usd=0.0815)


def test_a_missing_key_is_named_by_its_variable() -> None:
    """The key itself is nowhere in the configuration."""
    model = Model(provider="litellm", model="openai/x", api_key_env="SOME_KEY")
    answer = turn("architect", "design", model=model)

    assert answer.event == TurnFailed(
        turn=4,
        reason="no API key: set the environment variable SOME_KEY",
        usage=NOTHING,
        spent=Spend(),
    )


def test_a_target_that_cannot_be_used_fails_the_turn() -> None:
    """The reason says what to do."""
    target = TextTarget()
    target.broken = True

    assert turn("architect", "design", target=target).event == TurnFailed(
        turn=4, reason="no compiler; install one", usage=NOTHING, spent=Spend()
    )


def test_the_same_command_twice_gives_the_same_answer() -> None:
    """A lost answer is asked for again; the catalogue must not mind."""
    assert turn("optimizer", "step") == turn("optimizer", "step")


def test_a_turn_of_another_role_is_refused() -> None:
    """A command in the wrong mailbox is a defect of the director."""
    actor = RoleActor(
        "analyst", cast("Target", TextTarget()), lambda _: NotImplemented, lambda: 0.0
    )
    with pytest.raises(ValueError, match="the analyst takes its own turns"):
        actor.handle(command("architect", "design", {}, Model()))


def test_a_provider_error_survives_a_process_boundary() -> None:
    """Actors may run anywhere."""
    error = pickle.loads(pickle.dumps(ProviderError("why", 2, usage=None)))

    assert (error.reason, error.n_calls, error.usage, str(error)) == ("why", 2, None, "why")
