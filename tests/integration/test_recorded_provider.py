"""A run whose replies come from another run's log."""

from pathlib import Path

import pytest

from actors.providers.port import ProviderError
from actors.providers.recorded import RecordedProvider
from decisions.audit import audit
from events.blobs import Blobs
from events.campaign import Campaign, Model
from events.errors import LogError
from events.log import read
from events.vocabulary import CandidateProposed, RoleReplied, TurnAssigned, TurnFailed
from targets.protocol import Ask
from tests.support.asking import question
from tests.support.fake_target import FakeCatalogue, FakeTarget
from tests.support.runs import begin, campaign


class Mute(FakeCatalogue):
    """A catalogue that nobody may ask."""

    def reply(self, ask: Ask) -> str:
        """Say what went wrong."""
        raise AssertionError("the catalogue was asked")


def again(run: Path, **search: int) -> Campaign:
    model = Model(provider="recorded", run=str(run))
    return campaign(**search).model_copy(update={"models": {"default": model}})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    begin(folder, campaign(max_candidates=10, repairs=0))
    return folder


def sources(run: Path) -> list[str]:
    return [r.event.source for r in read(run) if isinstance(r.event, CandidateProposed)]


def test_the_same_campaign_goes_the_same_way(run: Path, tmp_path: Path) -> None:
    """Every prompt is one that was asked, so every reply is the one it had, and nothing is paid."""
    target = FakeTarget()
    target.catalogue = Mute()
    second = tmp_path / "second"
    state = begin(second, again(run, max_candidates=10, repairs=0), target)

    assert state.finished is not None
    assert sources(second) == sources(run)
    assert state.spending.settled.model_calls == 0
    assert list(audit(read(second), Blobs(second).get, LogError)) == []


def test_turns_beyond_the_recorded_ones_fail_and_the_run_ends(run: Path, tmp_path: Path) -> None:
    """What was recorded is used up; that is a failure of turns, not of the run."""
    second = tmp_path / "second"
    state = begin(second, again(run, max_candidates=40))
    failed = [r.event.reason for r in read(second) if isinstance(r.event, TurnFailed)]

    assert state.finished is not None
    assert failed
    assert all("recorded:first: it has no reply to " in reason for reason in failed)


def test_a_prompt_that_nobody_has_seen_gets_the_reply_in_its_place(run: Path) -> None:
    """The second design of a kernel gets that of its second design."""
    turns = {r.seq: r.event for r in read(run) if isinstance(r.event, TurnAssigned)}
    replies = {
        (turns[r.because[0]].kernel, turns[r.because[0]].task, turns[r.because[0]].nth): r.event
        for r in read(run)
        if isinstance(r.event, RoleReplied)
    }
    provider, blobs = RecordedProvider(run), Blobs(run)
    for (kernel, task, nth), reply in replies.items():
        asked = question("never seen", kernel=kernel, task=task, nth=nth)
        completion = provider.complete(asked)

        assert completion.text.encode() == blobs.get(reply.reply)
        assert provider.complete(asked) == completion


def test_a_prompt_that_was_seen_gets_its_own_reply_in_any_place(run: Path) -> None:
    """Changed rules may ask in another order."""
    blobs = Blobs(run)
    reply = [r.event for r in read(run) if isinstance(r.event, RoleReplied)][4]
    asked = question(blobs.get(reply.prompt).decode(), kernel="beta", task="review", nth=99)

    assert RecordedProvider(run).complete(asked).text.encode() == blobs.get(reply.reply)


def test_a_folder_without_a_run_fails_the_turn(tmp_path: Path) -> None:
    """`run` and `doctor` say so before; here it must not be a crash."""
    with pytest.raises(ProviderError, match=r"recorded:none: "):
        RecordedProvider(tmp_path / "none")
