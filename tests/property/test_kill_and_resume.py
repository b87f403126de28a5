"""The central law: a run killed anywhere and resumed goes on as if it had not been."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.mailboxes import Delivery
from actors.messages import Actor
from actors.opening import first_event
from decisions.policy import IN_FORCE
from events import segments
from events.blobs import Blobs
from events.log import Entry, EventLog, read
from events.vocabulary import Record, RunResumed
from tests.support.fake_target import CostedTarget
from tests.support.operated import Operator, Plan, go_on, hint, pause, spend_more, veto
from tests.support.runs import SECRET, campaign, story, ticking

CAMPAIGN = campaign(max_candidates=8)
PLANS = (hint, pause, go_on, veto(1), spend_more)


class Killed(BaseException):
    """The process is gone."""


class Fuse:
    """Kills the process that works for too long: ``before`` or after its last act is durable."""

    def __init__(self, n_acts: int, *, before: bool) -> None:
        self._left, self._before = n_acts, before

    def burn(self, *, before: bool) -> None:
        """Count one act; called on both sides of it."""
        if before == self._before:
            self._left -= 1
            if self._left < 0:
                raise Killed


class MortalLog:
    """A log whose process dies."""

    def __init__(self, log: EventLog, fuse: Fuse) -> None:
        self._log, self._fuse = log, fuse

    def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append, and die around it."""
        self._fuse.burn(before=True)
        records = self._log.append(entries)
        self._fuse.burn(before=False)
        return records


class MortalMailbox(LocalMailbox):
    """A mailbox whose process dies while an actor works, or with its answer in hand."""

    def __init__(self, actors: dict[str, Actor], fuse: Fuse) -> None:
        super().__init__(actors)
        self._fuse = fuse

    def receive(self, timeout_s: float) -> Delivery | None:
        """Deliver, and die around it."""
        self._fuse.burn(before=True)
        delivery = super().receive(timeout_s)
        self._fuse.burn(before=False)
        return delivery


def live_once(run: Path, fuse: Fuse, operator: Operator) -> bool:
    """Start or resume the run; return whether it came to its end."""
    target = CostedTarget()
    with EventLog.open(run, ticking()) as log:
        records = list(read(run))
        mailbox = MortalMailbox(crew(target, run / "lease", {}, clock=lambda: 0.0), fuse)
        mortal: EventLog = MortalLog(log, fuse)  # type: ignore[assignment]
        boss = Director(mortal, Blobs(run), mailbox, orders=operator)
        operator.state = lambda: boss.state
        try:
            if records:
                mark = RunResumed(versions={}, rules=dict(IN_FORCE), toolchain=target.fingerprint())
                boss.resume(records, mark)
            else:
                boss.start(
                    first_event(CAMPAIGN, target, Blobs(run), secret_seed=SECRET, versions={})
                )
            return bool(boss.run().finished)
        except Killed:
            return False


@cache
def calm_story(*plans: Plan) -> list[str]:
    with TemporaryDirectory() as folder:
        assert live_once(Path(folder), Fuse(10**9, before=True), Operator(*plans))
        return story(read(Path(folder)))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.booleans()), min_size=1, max_size=6))
def test_kills_leave_no_trace(kills: list[tuple[int, bool]]) -> None:
    """The log after any sequence of kills, in many segments, tells what an undisturbed run does."""
    assert stormy_story(kills) == calm_story()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.booleans()), min_size=1, max_size=6))
def test_kills_lose_no_order_and_obey_none_twice(kills: list[tuple[int, bool]]) -> None:
    """An order outlives the process until it is durable, and is told from its own repetition."""
    calm = calm_story(*PLANS)

    assert stormy_story(kills, *PLANS) == calm
    assert sum(line.startswith("operator: ") for line in calm) == len(PLANS)


def stormy_story(kills: list[tuple[int, bool]], *plans: Plan) -> list[str]:
    """What a run says that is killed again and again, while one operator watches."""
    operator = Operator(*plans)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(segments, "MAX_RECORDS", 20)
        run = Path(folder)
        for n_acts, before in kills:
            live_once(run, Fuse(n_acts, before=before), operator)
        live_once(run, Fuse(10**9, before=True), operator)
        assert len(segments.segments_of(run)) > 3
        return story(read(run))
