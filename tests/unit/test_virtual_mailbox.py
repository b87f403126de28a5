"""A mailbox on a virtual clock: who works when, what is delivered when, and what gets lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from actors.crew import crew
from actors.director import Director
from actors.mailboxes import Delivery
from actors.messages import Answer, Command
from actors.opening import first_event
from actors.virtual_mailbox import VirtualMailbox
from events.blobs import Blobs
from events.log import EventLog, read
from events.vocabulary import FactLearned, LearningRequested, RequestLost, ScreeningRequested
from sim.clock import VirtualClock
from sim.faults import Mishap
from tests.support.fake_target import FakeTarget
from tests.support.runs import SECRET, begin, campaign, ticking

DAY_S = 86_400.0


class Busy:
    """An actor whose work takes as many seconds as its request's number."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.began: list[tuple[int, float]] = []

    def handle(self, command: Command) -> Answer:
        """Note the time, and spend it."""
        before = self._clock()
        self.began.append((command.seq, before))
        self._clock.spend(command.seq)
        claim = f"{self._clock() - before:g} s"
        return Answer(FactLearned(kernel="k", topic="rule", claim=claim, toolchain=""))


def learning(seq: int, place: int | None = None) -> Command:
    request = LearningRequested(kernel="k", topic="rule")
    return Command(seq, seq if place is None else place, request, {})


def screening(seq: int) -> Command:
    request = ScreeningRequested(
        candidate=seq, kernel="k", source="0" * 64, twin=None, fixture_seeds=()
    )
    return Command(seq, seq, request, {})


class World:
    """A mailbox with a keeper and a screening pool."""

    def __init__(self, workers: int = 1, *mishaps: Mishap | None) -> None:
        self.clock = VirtualClock()
        self.actor = Busy(self.clock)
        dealt = iter(mishaps)
        self.mailbox = VirtualMailbox(
            {"keeper": self.actor, "screening": self.actor},
            self.clock,
            workers=workers,
            faults=lambda: next(dealt, None),
        )

    def heard(self, n: int) -> list[tuple[int, float, Delivery]]:
        """The next ``n`` deliveries, with their time."""
        got = []
        for _ in range(n):
            delivery = self.mailbox.receive(DAY_S)
            assert delivery is not None
            got.append((delivery.seq, round(self.clock(), 6), delivery))
        return got

    def times(self, n: int) -> list[tuple[int, float]]:
        """The same without the answers."""
        return [(seq, at) for seq, at, _ in self.heard(n)]


def test_without_faults_and_time_the_log_is_that_of_the_local_mailbox(tmp_path: Path) -> None:
    """Both hand out work and deliver answers in the order of places; time is all they differ in."""
    begin(tmp_path / "local", campaign())
    target, run, clock = FakeTarget(), tmp_path / "virtual", VirtualClock()
    with EventLog.open(run, ticking()) as log:
        actors = crew(target, run / "lease", {}, lambda: 0.0)
        boss = Director(log, Blobs(run), VirtualMailbox(actors, clock))
        boss.start(first_event(campaign(), target, Blobs(run), secret_seed=SECRET, versions={}))
        boss.run()

    assert [r.event for r in read(run)] == [r.event for r in read(tmp_path / "local")]


def test_an_answer_comes_when_the_time_of_the_work_has_passed() -> None:
    """Actors work side by side, and each of them on one command at a time."""
    world = World()
    for command in (learning(3), learning(4), screening(5)):
        world.mailbox.send(command)

    assert world.times(3) == [(3, 3.0), (5, 5.0), (4, 7.0)]


def test_an_actor_sees_its_own_time_pass() -> None:
    """What an actor reports as its wall time is what it has spent."""
    world = World()
    world.mailbox.send(learning(3))

    event = world.heard(1)[0][2].answer.event
    assert isinstance(event, FactLearned)
    assert event.claim == "3 s"


def test_the_pool_takes_as_many_commands_as_it_has_workers() -> None:
    """The third of three equal candidates waits for one of two workers."""
    world = World(2)
    for seq in (2, 3, 4):
        world.mailbox.send(screening(seq))

    assert world.times(3) == [(2, 2.0), (3, 3.0), (4, 6.0)]


def test_answers_of_one_instant_come_in_the_order_of_places() -> None:
    """A command that is issued again keeps its place, or a resumed run would take other turns."""
    world = World()
    world.mailbox.send(screening(6))
    world.mailbox.send(learning(6, place=2))

    assert [delivery.actor for _, _, delivery in world.heard(2)] == ["keeper", "screening"]


def test_waiting_costs_virtual_time_only() -> None:
    """A poll without an answer moves the clock by its timeout, to the answer or not at all."""
    world = World()
    world.mailbox.send(learning(5))

    assert world.mailbox.receive(2.0) is None
    assert world.clock() == 2.0
    assert world.times(1) == [(5, 5.0)]
    assert world.mailbox.receive(DAY_S) is None
    assert world.clock() == 5.0 + DAY_S


@pytest.mark.parametrize(("share", "at_s"), [(0.0, 0.0), (0.3, 2.0), (0.6, 4.0), (0.99, 6.0)])
def test_an_actor_may_die_at_each_of_its_waits(share: float, at_s: float) -> None:
    """Its command is told lost then, and the next one finds a successor."""
    world = World(1, Mishap("crash", share, 0.0))
    world.mailbox.send(learning(6))
    world.mailbox.send(learning(7))

    (_, told_s, told), (_, done_s, done) = world.heard(2)
    assert isinstance(told.answer.event, RequestLost)
    assert told_s == at_s
    assert isinstance(done.answer.event, FactLearned)
    assert done_s == at_s + 7


def test_a_lost_reply_is_told_when_it_should_have_come() -> None:
    """The work was done, and its time is gone."""
    world = World(1, Mishap("lost", 0.5, 0.0))
    world.mailbox.send(learning(6))

    ((_, at_s, told),) = world.heard(1)
    assert isinstance(told.answer.event, RequestLost)
    assert at_s == 6.0
    assert world.mailbox.receive(DAY_S) is None


def test_a_late_reply_is_told_lost_and_still_comes() -> None:
    """The director must not mind an answer to what it has issued again."""
    world = World(1, Mishap("late", 0.5, 100.0))
    world.mailbox.send(learning(6))

    (_, told_s, told), (_, came_s, came) = world.heard(2)
    assert isinstance(told.answer.event, RequestLost)
    assert isinstance(came.answer.event, FactLearned)
    assert (told_s, came_s) == (6.0, 106.0)


def lose_node_at(world: World, at_s: float, for_s: float) -> None:
    def strike() -> None:
        assert world.mailbox.lose_node(for_s)

    after(world, at_s, strike)


def after(world: World, at_s: float, act: Callable[[], None]) -> None:
    def wait() -> object:
        yield world.clock.world.timeout(at_s)
        act()

    world.clock.world.process(wait())  # type: ignore[arg-type]


def test_a_node_that_goes_away_takes_its_commands_and_its_capacity_with_it() -> None:
    """Of two workers one is gone for a while; what it worked on is lost at once."""
    world = World(2)
    lose_node_at(world, 1.0, 100.0)
    for seq in (10, 11, 12):
        world.mailbox.send(screening(seq))

    told, *done = world.heard(3)
    assert isinstance(told[2].answer.event, RequestLost)
    assert (told[0], told[1]) == (10, 1.0)
    assert [(seq, at) for seq, at, _ in done] == [(11, 11.0), (12, 23.0)]

    world.mailbox.receive(200.0)
    world.mailbox.send(screening(13))
    world.mailbox.send(screening(14))
    assert [round(at - 223, 6) for _, at in world.times(2)] == [13, 14]


def test_a_node_that_is_away_cannot_go_away_again() -> None:
    """An outage during an outage changes nothing."""
    world = World(1)
    lose_node_at(world, 1.0, 100.0)
    tries: list[bool] = []
    after(world, 2.0, lambda: tries.append(world.mailbox.lose_node(5.0)))
    world.mailbox.receive(50.0)
    world.mailbox.send(screening(3))

    assert tries == [False]
    assert world.times(1) == [(3, 104.0)]
