"""Which model is asked, what a turn reserves, and what it has cost."""

import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.mailboxes import Delivery
from actors.messages import Command
from actors.opening import first_event
from actors.providers.port import Completion, Question
from actors.providers.prices import UnknownPriceError, prices
from actors.roles import RoleActor
from decisions import models
from decisions.audit import audit
from decisions.models import FLOOR, is_busy, weights
from decisions.settling import believable
from events.blobs import Blobs
from events.campaign import ROLES, Budget, Campaign, Model, Roles
from events.errors import LogError
from events.log import EventLog, read
from events.projections.returns import Return, Returns
from events.projections.state import State
from events.vocabulary import (
    CandidateAccepted,
    CandidateProposed,
    Price,
    Record,
    RoleReplied,
    RunStarted,
    Spend,
    TurnAssigned,
    Usage,
)
from tests.support.fake_target import FakeTarget
from tests.support.runs import SECRET, campaign, ticking

CALLED = Model(
    provider="litellm", model="openai/x", at_once=2, usd_per_million_in=1, usd_per_million_out=2
)
TWO = {"big": CALLED, "small": CALLED.model_copy(update={"at_once": 1})}
ROLES_OF_TWO = Roles.model_validate(dict.fromkeys(ROLES, ("big", "small")))


def two_models(**search: int) -> Campaign:
    """A campaign whose every role has two models."""
    return Campaign(**{**dict(campaign(**search)), "models": TWO, "roles": ROLES_OF_TWO})


def started(settings: Campaign) -> State:
    start = RunStarted(
        campaign=settings, secret_seed=SECRET, versions={}, toolchain={}, sources={}, cards={},
        prices=prices(settings, lambda model: None),
    )  # fmt: skip
    state = State()
    state.apply(Record(seq=0, time_ns=0, actor="director", event=start))
    return state


class Unequal:
    """Answers like the catalogue, but a model that is no good has nothing to say but `go`."""

    def __init__(self, target: FakeTarget, model: Model) -> None:
        self._target, self._model = target, model
        self.name = f"litellm:{model.model}"

    def complete(self, question: Question) -> Completion:
        """Answer, and count a token for four bytes."""
        reply = self._target.catalogue.reply(question.ask)
        if question.turn.model == "small" and question.ask.task in ("implement", "step"):
            reply = reply.replace("time 0.", "time 9.").replace("<search>knob", "<search>no knob")
        n_in, n_out = len(question.prompt) // 4, len(reply) // 4 + 1
        return Completion(reply, Usage(tokens_in=n_in, tokens_out=n_out), 1)


class Watchful:
    """A mailbox that notes how many turns wait for each model, and answers the latest first."""

    def __init__(self, inner: LocalMailbox) -> None:
        self._inner = inner
        self.waiting: dict[int, str] = {}
        self.most: Counter[str] = Counter()

    def send(self, command: Command) -> None:
        """Count a turn."""
        if isinstance(command.request, TurnAssigned):
            self.waiting[command.seq] = command.request.model
            for model, n in Counter(self.waiting.values()).items():
                self.most[model] = max(self.most[model], n)
        self._inner.send(command)

    def receive(self, timeout_s: float) -> Delivery | None:
        """Pass an answer on."""
        delivery = self._inner.receive(timeout_s)
        if delivery is not None:
            self.waiting.pop(delivery.seq, None)
        return delivery


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Watchful, State]:
    """A finished run with one model that is good and one that is not."""
    run, target, settings = tmp_path_factory.mktemp("runs") / "r", FakeTarget(), two_models()
    clock = itertools.count().__next__
    actors = crew(target, run / "lease", {}, clock)
    for role in ROLES:
        actors[role] = RoleActor(role, target, lambda model: Unequal(target, model), clock)
    mailbox = Watchful(LocalMailbox(actors))
    with EventLog.open(run, ticking()) as log:
        boss = Director(log, Blobs(run), mailbox)
        first = first_event(
            settings, target, Blobs(run), secret_seed=SECRET, versions={},
            prices=prices(settings, lambda model: None),
        )  # fmt: skip
        boss.start(first)
        return run, mailbox, boss.run()


def test_audit_draws_the_same_models_again(unequal: tuple[Path, Watchful, State]) -> None:
    """The choice, its weights, the cost of every turn and the credit are derived."""
    run, _, state = unequal

    assert state.finished is not None
    assert list(audit(read(run), Blobs(run).get, LogError)) == []


def test_the_model_that_brings_more_is_asked_more(unequal: tuple[Path, Watchful, State]) -> None:
    """And the other one is still asked now and then."""
    run, _, state = unequal
    big, small = (state.returns.of("optimizer", name) for name in ("big", "small"))

    assert big.gain > 0
    assert small.gain == 0
    later = [r.event for r in read(run) if isinstance(r.event, TurnAssigned)][40:]
    drawn = Counter(turn.model for turn in later if "drawn" in turn.reasons)
    assert drawn["big"] > drawn["small"] > 0


def test_an_accept_is_credited_to_all_who_answered(unequal: tuple[Path, Watchful, State]) -> None:
    """The architect of a design has its part in it, and so has the reviewer."""
    run, _, state = unequal
    events = [r.event for r in read(run)]
    proposals = {e.candidate: e for e in events if isinstance(e, CandidateProposed)}
    accepts = [e for e in events if isinstance(e, CandidateAccepted)]
    design = next(a for a in accepts if proposals[a.candidate].form == "design")

    assert proposals[design.candidate].models.keys() == {"architect", "implementer", "reviewer"}
    expected = Counter[tuple[str, str]]()
    for accept in accepts:
        for role, model in proposals[accept.candidate].models.items():
            expected[role, model] -= accept.effect  # type: ignore[assignment]
    for (role, model), gain in expected.items():
        assert state.returns.of(role, model).gain == pytest.approx(gain)


def test_no_model_has_more_turns_at_a_time_than_it_may(
    unequal: tuple[Path, Watchful, State],
) -> None:
    """A limit over all roles and kernels; turns wait for it, and nothing stands still."""
    _, mailbox, _ = unequal

    assert mailbox.most == {"big": 2, "small": 1}


def test_what_turns_cost_is_what_their_models_cost(unequal: tuple[Path, Watchful, State]) -> None:
    """Nothing is reserved at the end, and both accounts agree."""
    run, _, state = unequal
    spent = [r.event.spent.cost_usd for r in read(run) if isinstance(r.event, RoleReplied)]
    by_model = [each.cost_usd for role in state.returns.roles.values() for each in role.values()]

    assert sum(spent) > 0
    assert state.spending.settled.cost_usd == pytest.approx(sum(spent))
    assert sum(by_model) == pytest.approx(sum(spent))
    assert state.spending.reserved == {}


def test_each_turn_of_a_task_has_its_place(unequal: tuple[Path, Watchful, State]) -> None:
    """`nth` counts from 1 without a gap; a `recorded` model finds replies by it."""
    run, _, _ = unequal
    places: dict[tuple[str, str], list[int]] = {}
    for record in read(run):
        if isinstance(record.event, TurnAssigned):
            turn = record.event
            places.setdefault((turn.kernel, turn.task), []).append(turn.nth)

    assert all(found == list(range(1, len(found) + 1)) for found in places.values())


def returns(*known: Return) -> State:
    state = started(two_models())
    state.returns = Returns({"optimizer": dict(zip(("big", "small"), known, strict=True))})
    return state


amounts = st.builds(
    Return,
    n_turns=st.integers(0, 5000),
    cost_usd=st.floats(0, 1e4),
    gain=st.floats(-10, 500),
)


@given(amounts, amounts)
def test_weights_are_shares_with_a_floor(big: Return, small: Return) -> None:
    """Whatever was brought and paid, luck never silences a model."""
    found = weights(returns(big, small), "optimizer", ("big", "small"))

    assert sum(found) == pytest.approx(1)
    assert min(found) >= FLOOR / 2 - 1e-12


@given(amounts, amounts, st.floats(0.01, 100))
def test_more_gain_never_lowers_a_weight(big: Return, small: Return, more: float) -> None:
    """And more cost never raises it."""
    names = ("big", "small")
    before = weights(returns(big, small), "optimizer", names)[0]
    gained = Return(big.n_turns, big.cost_usd, max(big.gain, 0) + more)
    richer = weights(returns(gained, small), "optimizer", names)[0]

    if small.gain >= 0 and big.n_turns and small.n_turns:
        assert richer >= before - 1e-9


def test_before_anything_is_accepted_all_are_alike() -> None:
    """Cost alone says nothing about a model."""
    state = returns(Return(10, 5.0, 0.0), Return(1, 0.0, 0.0))

    assert weights(state, "optimizer", ("big", "small")) == [0.5, 0.5]


def test_ten_times_the_price_for_the_same_gain_is_asked_less() -> None:
    """Worked out from the rule: every turn costs a cent, and ten average turns come on top."""
    cheap, dear = Return(100, 1.0, 10.0), Return(100, 19.0, 10.0)
    big, small = weights(returns(dear, cheap), "optimizer", ("big", "small"))
    prior = 10 * 22.0 / 200
    rates = [(10 + prior * 20 / 22) / (cost + prior) for cost in (20.0, 2.0)]

    assert (big, small) == pytest.approx([0.1 + 0.8 * rate / sum(rates) for rate in rates])
    assert small > 3 * big


def test_the_shares_of_the_draw_are_the_weights() -> None:
    """Over many turns; the coin follows from the turn's number alone."""
    state = returns(Return(100, 19.0, 10.0), Return(100, 1.0, 10.0))
    share = weights(state, "optimizer", ("big", "small"))[0]
    drawn = [models.draw(state, "optimizer", turn) for turn in range(2000)]

    assert drawn == [models.draw(state, "optimizer", turn) for turn in range(2000)]
    assert sum(d is not None and d[0] == "big" for d in drawn) / 2000 == pytest.approx(
        share, abs=0.03
    )


def test_a_busy_model_is_not_drawn_and_without_another_the_turn_waits() -> None:
    """None is no budget's refusal: a reply will free a model."""
    state = started(two_models())

    def wait_for(seq: int, model: str) -> None:
        state.pending[seq] = TurnAssigned(
            turn=seq, kernel="alpha", role="analyst", task="analyse", nth=seq, model=model,
            parent=1, thread=seq, reserved=Spend(), reasons="",
        )  # fmt: skip

    wait_for(1, "small")
    assert is_busy(state, "small")
    assert not is_busy(state, "big")
    assert {(models.draw(state, "architect", n) or ("",))[0] for n in range(20)} == {"big"}
    wait_for(2, "big")
    wait_for(3, "big")
    assert models.draw(state, "architect", 1) is None


def test_a_model_beyond_the_budget_leaves_its_turns_to_a_cheaper_one() -> None:
    """The search closes when none of a role's models can be paid."""
    cheap = CALLED.model_copy(update={"max_tokens": 100})
    settings = Campaign(
        **{**dict(two_models()), "models": {**TWO, "small": cheap},
           "budget": Budget(tokens=30_000)}
    )  # fmt: skip
    state = started(settings)

    assert models.unaffordable(state, "big") == "budget: tokens"
    assert models.unaffordable(state, "small") is None
    assert {(models.draw(state, "analyst", n) or ("",))[0] for n in range(20)} == {"small"}


# ---- prices --------------------------------------------------------------------------------


def priced(model: Model, **budget: float) -> dict[str, Price]:
    settings = Campaign(
        **{**dict(campaign()), "models": {"default": model}, "budget": Budget(**budget)}
    )
    listed = Price(usd_per_million_in=5, usd_per_million_out=6, source="litellm 1")
    return prices(settings, lambda name: listed if name == "known" else None)


def test_a_price_is_the_campaigns_or_the_tables() -> None:
    """The source says which."""
    own = Model(provider="litellm", model="known", usd_per_million_in=1, usd_per_million_out=2)

    assert priced(own)["default"].source == "campaign"
    assert priced(Model(provider="litellm", model="known"))["default"].usd_per_million_out == 6
    assert priced(Model()) == {}


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        (Model(provider="litellm", model="other"), {}),
        (Model(provider="litellm", model="known", base_url="http://localhost:1/v1"), {}),
        (Model(provider="command", command=("agent",)), {"cost_usd": 1.0}),
        (Model(provider="manual", folder="f"), {"cost_usd": 1.0}),
    ],
)
def test_money_that_nobody_could_count_is_refused(model: Model, budget: dict[str, float]) -> None:
    """The line says which keys to write."""
    with pytest.raises(UnknownPriceError, match=r"'models\.default'.*usd_per_million_in"):
        priced(model, **budget)


def test_a_command_without_a_price_costs_nothing_unless_a_budget_counts() -> None:
    """What a local program costs is nobody's business then."""
    assert priced(Model(provider="command", command=("agent",)))["default"].source == "not given"


@pytest.mark.parametrize(
    ("tokens_in", "tokens_out", "said"),
    [(300, 100, True), (31, 100, False), (2001, 100, False), (300, 3, False), (300, 9000, True),
     (300, 9193, False)],
)  # fmt: skip
def test_a_count_is_believed_if_it_can_be_true(tokens_in: int, tokens_out: int, said: bool) -> None:
    """Of a prompt of 1000 bytes, a reply of 100 and a limit of 8192 tokens."""
    usage = Usage(tokens_in=tokens_in, tokens_out=tokens_out)

    assert believable(usage, 1000, 100, 8192) == said
