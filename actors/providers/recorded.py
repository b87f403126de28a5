"""Answers from the log of an earlier run: no model, no key, no network, no cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from actors.providers.port import Completion, ProviderError, Question
from decisions.settling import NOTHING
from events.blobs import Blobs
from events.errors import LogError
from events.log import read
from events.vocabulary import RoleReplied, Sha, TurnAssigned, TurnFailed


class _Place(NamedTuple):
    """Which turn of a kernel's task, as `TurnAssigned.nth` counts."""

    kernel: str
    task: str
    nth: int


class RecordedProvider:
    """Gives the replies of one run again.

    The turn gets the reply that the same prompt had; of several, that of the turn in the same
    place. A prompt that nobody has seen gets the reply of the turn in its place: the nth of its
    kernel and task. So the same turn has the same answer however often it is asked.

    Raises:
        ProviderError: the folder holds no run, or a damaged one.
    """

    def __init__(self, run: Path) -> None:
        self.name = f"recorded:{run.name}"
        self._blobs = Blobs(run)
        try:
            self._replies = _replies(run)
        except LogError as e:
            raise ProviderError(f"{self.name}: {e}") from e
        self._by_prompt: dict[Sha, dict[_Place, RoleReplied]] = {}
        for place, reply in self._replies.items():
            if isinstance(reply, RoleReplied):
                self._by_prompt.setdefault(reply.prompt, {})[place] = reply

    def complete(self, question: Question) -> Completion:
        """Return what was replied then.

        Raises:
            ProviderError: nothing was, or it is no longer there.
        """
        turn = question.turn
        place = _Place(turn.kernel, turn.task, turn.nth)
        same = self._by_prompt.get(question.sha, {})
        reply = same.get(place) or next(iter(same.values()), None) or self._replies.get(place)
        match reply:
            case RoleReplied(reply=sha):
                return Completion(self._text(sha), NOTHING, n_calls=0)
            case TurnFailed(reason=reason):
                raise ProviderError(f"{self.name}: there was no reply then: {reason}")
            case None:
                where = f"{turn.task} turn {turn.nth} of {turn.kernel}"
                raise ProviderError(f"{self.name}: it has no reply to {where}")

    def _text(self, sha: Sha) -> str:
        try:
            return self._blobs.get(sha).decode("utf-8", "replace")
        except LogError as e:
            raise ProviderError(f"{self.name}: {e}") from e


def _replies(run: Path) -> Mapping[_Place, RoleReplied | TurnFailed]:
    """What each turn of a run came to."""
    turns: dict[int, TurnAssigned] = {}
    replies: dict[_Place, RoleReplied | TurnFailed] = {}
    for record in read(run):
        match record.event:
            case TurnAssigned() as turn:
                turns[record.seq] = turn
            case RoleReplied() | TurnFailed() as reply:
                turn = turns[record.because[0]]
                replies[_Place(turn.kernel, turn.task, turn.nth)] = reply
            case _:
                pass
    return replies
