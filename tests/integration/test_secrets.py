"""Nothing that a candidate could cheat with reaches whoever writes candidates."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.opening import first_event
from actors.providers.port import Completion, Question
from actors.roles import RoleActor
from decisions.brief import Brief, Known, Lesson
from decisions.coins import secret_int
from decisions.settling import NOTHING
from events.blobs import Blobs
from events.campaign import ROLES
from events.log import EventLog, read
from events.vocabulary import MeasurementRequested, ScreeningRequested
from prompts.told import Texts
from targets.protocol import Ask, FixtureResult, Measured, MeasureFailed
from tests.support.fake_target import FakeTarget
from tests.support.runs import campaign, ticking

SECRET = "3f9c1e07b5d2846ae1f0937c5b8d264ffe9a6c13d7082b45e6f1c9a03b7d582e"


class Spied(FakeTarget):
    """Notes the seeds that it is given, and the arrays that a real target would draw from them."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: set[int] = set()

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Note the fixtures' seeds."""
        self.seeds |= set(seeds)
        return super().check(kernel, artifact, seeds)

    def measure(
        self,
        kernel: str,
        arms: Sequence[bytes],
        schedule: Sequence[int],
        *,
        group: int,
        launches: int,
        checked: Sequence[bool],
        seed: int,
        limit_s: float,
    ) -> Measured | MeasureFailed:
        """Note the seed of the device's inputs."""
        self.seeds.add(seed)
        return super().measure(
            kernel, arms, schedule, group=group, launches=launches, checked=checked, seed=seed,
            limit_s=limit_s,
        )  # fmt: skip

    @property
    def secrets(self) -> dict[str, str]:
        """All forms of what must not be seen, by what it is."""
        found = {"the secret seed": SECRET, "a part of it": SECRET[:16]}
        for seed in self.seeds:
            if seed < 2**32:
                continue  # of an open fixture
            found[f"seed {seed}"], found[f"seed {seed:x}"] = str(seed), f"{seed:x}"
            values = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
            found[f"bytes of {seed}"] = values.tobytes().hex()
            found |= {f"value of {seed}: {v}": f"{v:.5g}".lstrip("-") for v in values}
        return found


class Spy:
    """A provider that keeps all that it is handed."""

    name = "catalogue"

    def __init__(self, target: FakeTarget) -> None:
        self._target = target
        self.heard: list[str] = []

    def complete(self, question: Question) -> Completion:
        """Keep the question; answer as the catalogue does."""
        turn = question.turn.model_dump_json()
        self.heard += [question.prompt, repr(question.ask), turn, repr(question)]
        return Completion(self._target.catalogue.reply(question.ask), NOTHING, 0)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Spied, Spy]:
    """A campaign with accepts, refusals, crashes and lessons; the wrong design among them."""
    run, target = tmp_path_factory.mktemp("runs") / "r", Spied()
    spy = Spy(target)
    actors = crew(target, run / "lease", {}, lambda: 0.0)
    for role in ROLES:
        actors[role] = RoleActor(role, target, lambda _: spy, lambda: 0.0)
    with EventLog.open(run, ticking()) as log:
        boss = Director(log, Blobs(run), LocalMailbox(actors))
        settings = campaign(max_candidates=24)
        boss.start(first_event(settings, target, Blobs(run), secret_seed=SECRET, versions={}))
        assert boss.run().finished is not None
    return run, target, spy


def test_no_secret_reaches_a_prompt_or_a_provider(played: tuple[Path, Spied, Spy]) -> None:
    """Neither the seed, nor what is drawn from it, nor values of what is drawn from that."""
    run, target, spy = played
    heard = "\n".join(spy.heard)
    held_out = {r.event.fixture_seeds[-1] for r in read(run)
                if isinstance(r.event, ScreeningRequested)}  # fmt: skip

    assert held_out <= target.seeds
    assert secret_int(SECRET, "held-out fixture") in held_out
    assert secret_int(SECRET, "device inputs") in target.seeds
    assert len(spy.heard) > 100
    assert "refused at correctness" in heard  # a verdict on a held-out fixture was told
    assert [what for what, text in target.secrets.items() if text in heard] == []


def test_no_coin_reaches_a_prompt_or_a_provider(played: tuple[Path, Spied, Spy]) -> None:
    """Whoever knew which arm runs first could be fast in that place."""
    run, _, spy = played
    heard = "\n".join(spy.heard)
    coins = {r.event.coins for r in read(run) if isinstance(r.event, MeasurementRequested)}
    told = [f(c).strip("()[]") for c in coins if len(c) >= 3 for f in (repr, json.dumps)]

    assert told
    assert [text for text in told if text in heard] == []
    assert "candidate_first" not in heard


def test_what_a_role_is_told_is_listed_here() -> None:
    """Whoever adds to it has to think of what may be seen."""
    fields = {
        kind.__name__: " ".join(field.name for field in dataclasses.fields(kind))
        for kind in (Brief, Lesson, Texts, Ask, Question, Completion)
    }

    assert fields == {
        "Brief": "kernel task incumbent incumbent_source incumbent_profile speedup time_over_bound "
        "bottleneck facts hints lessons tried model price seed n_designs design claim refusal",
        "Lesson": "candidate form hypothesis verdict effect",
        "Texts": "source plan document passage draft complaint diagnostics previous profile",
        "Ask": "kernel task incumbent_source plan tried bottleneck seed",
        "Question": "prompt ask turn",
        "Completion": "text usage n_calls",
    }
    assert Known._fields == ("name", "claim", "state", "is_rule", "uses")
