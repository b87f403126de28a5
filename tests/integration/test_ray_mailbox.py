"""Ray delivers, and what it loses is told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.messages import Command
from actors.ray_mailbox import RayMailbox, connect, crew_makers
from events.campaign import ROLES, Campaign, Model
from events.vocabulary import FactLearned, LearningRequested, RequestLost
from tests.support.mortal import MortalMaker
from tests.support.runs import campaign

pytestmark = [pytest.mark.ray, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def _ray() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # noqa: TID251  # before Ray starts
    connect(2, None)
    yield
    RayMailbox([]).close()


def ask(mailbox: RayMailbox, seq: int, signature: str) -> object:
    request = LearningRequested(kernel="k", topic="rule", signature=signature)
    mailbox.send(Command(seq, seq, request, {}))
    for _ in range(300):
        if delivery := mailbox.receive(0.2):
            assert delivery.seq == seq
            return delivery.answer.event
    raise AssertionError("no answer in a minute")


def test_only_roles_are_given_keys() -> None:
    """Screening workers and the device run what models wrote."""
    makers = crew_makers(campaign(), Path("lease"), {"SOME_KEY": "secret"})

    assert {maker.address for maker in makers if maker.environ} == set(ROLES)
    assert sum(maker.address == "screening" for maker in makers) == 2
    assert "secret" not in repr(makers)


def test_a_role_asks_as_many_models_at_a_time_as_its_models_allow() -> None:
    """And applies the edits of a step meanwhile; the catalogue needs no company."""
    model = Model(provider="command", command=("agent",), at_once=3)
    settings = Campaign.model_validate(
        {**dict(campaign()), "models": {"agent": model, "other": model},
         "roles": {"optimizer": ("agent", "other"), "analyst": ("agent", "default")}}
    )  # fmt: skip
    makers = crew_makers(settings, Path("lease"), {})

    assert {m.address: m.at_once for m in makers if m.at_once > 1} == {"optimizer": 7, "analyst": 4}


@pytest.mark.usefixtures("_ray")
def test_an_actor_may_handle_two_commands_at_a_time(tmp_path: Path) -> None:
    """Each of them waits until the other one is there."""
    mailbox = RayMailbox([MortalMaker(tmp_path / "meeting", at_once=2)])
    for seq in (1, 2):
        request = LearningRequested(kernel="k", topic="rule", signature="meet")
        mailbox.send(Command(seq, seq, request, {}))
    answered: set[int] = set()
    while len(answered) < 2:
        if delivery := mailbox.receive(0.2):
            assert isinstance(delivery.answer.event, FactLearned)
            answered.add(delivery.seq)

    assert answered == {1, 2}


@pytest.mark.usefixtures("_ray")
def test_a_dead_actor_is_told_and_succeeded(tmp_path: Path) -> None:
    """Ray retries nothing: the loss is an answer, and the next command finds a new actor."""
    mailbox = RayMailbox([MortalMaker(tmp_path / "tomb")])

    first = ask(mailbox, 1, "die")
    again = ask(mailbox, 2, "die")

    assert isinstance(first, RequestLost)
    assert first.by == "mailbox"
    assert isinstance(again, FactLearned)


@pytest.mark.usefixtures("_ray")
def test_an_actor_that_raises_loses_its_request_and_lives(tmp_path: Path) -> None:
    """A defect in an actor is told with its reason; the actor goes on."""
    mailbox = RayMailbox([MortalMaker(tmp_path / "tomb")])

    before = ask(mailbox, 1, "")
    lost = ask(mailbox, 2, "raise")
    after = ask(mailbox, 3, "")

    assert isinstance(lost, RequestLost)
    assert "a defect" in lost.reason
    assert before == after


@pytest.mark.usefixtures("_ray")
def test_a_pool_shares_its_commands(tmp_path: Path) -> None:
    """Commands of one address go to the least busy actor of it."""
    mailbox = RayMailbox([MortalMaker(tmp_path / "a"), MortalMaker(tmp_path / "b")])
    for seq in (1, 2):
        request = LearningRequested(kernel="k", topic="rule")
        mailbox.send(Command(seq, seq, request, {}))

    answers: set[str] = set()
    while len(answers) < 2:
        if delivery := mailbox.receive(0.2):
            answers.add(str(delivery.answer.event))

    assert len(answers) == 2


@pytest.mark.usefixtures("_ray")
def test_actors_that_find_no_processor_are_missed(tmp_path: Path) -> None:
    """A run that joins a full cluster says so; it does not wait for ever."""
    makers = [MortalMaker(tmp_path / str(i)) for i in range(40)]

    with pytest.raises(ConnectionError, match="did not start in 5 s"):
        RayMailbox(makers).wait_for_actors(5)
