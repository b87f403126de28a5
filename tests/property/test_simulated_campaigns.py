"""Whatever goes wrong in a simulated campaign, what must hold holds; what breaks it is found."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from actors import director, simulation
from actors.director import Director
from actors.mailboxes import Delivery
from actors.simulation import Outcome, Simulation
from actors.virtual_mailbox import VirtualMailbox
from decisions.address import DIRECTOR
from decisions.due import Due
from decisions.plan import decide
from events.projections.state import State
from events.vocabulary import AnyEvent, CandidateAccepted, CandidateRejected, CandidateScreened
from sim.clock import VirtualClock
from sim.disk import SimulatedDisk
from sim.rates import CALM, KINDS, Rates
from tests.support.runs import campaign
from tests.support.timed_target import TimedTarget

ROOT = Path(__file__).parents[2]
HARSH = Rates(
    crash=0.03, lost=0.02, late=0.02, hang=0.03, node=60, full=30, kill=60, torn=30, power=30,
    update=15, stop=30, pause=30, hint=30, veto=60,
)  # fmt: skip
"""A campaign of one hour sees what another one sees in days."""
pytestmark = pytest.mark.timeout(600)  # with --campaigns 200

SMALL = campaign(max_candidates=10).model_copy(update={"kernels": ("alpha",)})


def simulate(folder: Path, seed: int = 1, rates: Rates = HARSH) -> Outcome:
    return Simulation(folder / f"run-{seed}", SMALL, TimedTarget(), rates, seed).finish()


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> list[Outcome]:
    """A campaign per seed, with all that can go wrong."""
    seeds = range(1, pytestconfig.getoption("--campaigns") + 1)
    return [simulate(tmp_path_factory.mktemp("campaigns"), seed) for seed in seeds]


def test_all_that_must_hold_holds(outcomes: list[Outcome]) -> None:
    """To the end of every campaign, whose log verifies and whose audit finds nothing."""
    assert [(o.seed, o.violation) for o in outcomes if o.violation] == []


def test_every_kind_of_fault_really_occurs(outcomes: list[Outcome]) -> None:
    """A fault that never happens proves nothing."""
    struck = sum((Counter(o.n_struck) for o in outcomes), Counter[str]())
    assert set(struck) == set(KINDS)
    assert sum(o.n_processes for o in outcomes) > 3 * len(outcomes)


def test_a_calm_campaign_needs_one_process(tmp_path: Path) -> None:
    """And virtual hours that are no real ones."""
    outcome = simulate(tmp_path, rates=CALM)

    assert outcome.violation is None
    assert outcome.n_processes == 1
    assert not any(outcome.n_struck.values())
    assert outcome.days * 24 > 0.3


# ---- determinism ---------------------------------------------------------------------------


def written(run: Path) -> str:
    """Hash of all that a run has written, without who wrote it and what a kill left half-made."""
    files = [p for p in run.rglob("*") if p.is_file() and p.name not in ("LOCK", "lease")]
    kept = sorted(p for p in files if not p.name.startswith(".tmp-"))
    whole = b"".join(str(p.relative_to(run)).encode() + p.read_bytes() for p in kept)
    return hashlib.sha256(whole).hexdigest()


def test_a_seed_has_one_log_byte_for_byte(tmp_path: Path) -> None:
    """In every process, whatever it hashes text to: or no failure could be seen twice."""
    code = (
        "import sys; from pathlib import Path;"
        "from tests.property.test_simulated_campaigns import simulate, written;"
        "folder = Path(sys.argv[1]); simulate(folder, 7); print(written(folder / 'run-7'))"
    )
    hashes = set()
    for number in ("1", "2"):
        folder = tmp_path / number
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": str(ROOT)},  # noqa: TID251  # of a child
            capture_output=True, text=True, check=True, timeout=100,
        )  # fmt: skip
        hashes.add(done.stdout)
    assert len(hashes) == 1


def test_another_seed_has_another_log(tmp_path: Path) -> None:
    """Its id, its secret seed and its faults are its own."""
    simulate(tmp_path, 1)
    simulate(tmp_path, 2)
    assert written(tmp_path / "run-1") != written(tmp_path / "run-2")


# ---- planted violations --------------------------------------------------------------------


class TwiceMailbox(VirtualMailbox):
    """Delivers every answer twice."""

    _last: Delivery | None = None

    def receive(self, timeout_s: float) -> Delivery | None:
        """Deliver, and deliver again."""
        again, self._last = self._last, None
        if again is None:
            self._last = again = super().receive(timeout_s)
        return again


class GullibleDirector(Director):
    """Takes every answer for one that it has not had."""

    def _take(self, delivery: Delivery) -> None:
        self._blobs.put_all(delivery.answer.blobs)
        self._append(delivery.answer.event, because=(delivery.seq,), actor=delivery.actor)
        self._decide()


class HastyDirector(Director):
    """Accepts what has passed screening."""

    def _append(self, event: AnyEvent, because: tuple[int, ...] = (), actor: str = "") -> None:
        super()._append(event, because, actor or DIRECTOR)
        if isinstance(event, CandidateScreened) and event.passed and event.candidate > 3:
            node = self.state.tree.nodes[event.candidate]
            best = self.state.tree.incumbent(node.kernel).candidate
            accepted = CandidateAccepted(
                candidate=event.candidate, incumbent=best, capital=999.0, n_pairs=9, effect=-1.0,
                low=-2.0, high=0.0, next_price=0.003, reason="it looks fast",
            )  # fmt: skip
            super()._append(accepted, (self.state.seq,), DIRECTOR)


class FlatteringDirector(Director):
    """Skips the verdict on what was measured slower, and accepts it."""

    def _append(self, event: AnyEvent, because: tuple[int, ...] = (), actor: str = "") -> None:
        if isinstance(event, CandidateRejected) and event.effect is not None:
            told = event.model_dump(exclude={"kind"})
            event = CandidateAccepted(**told)
        super()._append(event, because, actor or DIRECTOR)


class FastClock(VirtualClock):
    """Lets half of the time pass that work takes."""

    def spent(self) -> float:
        """Half of it."""
        return super().spent() / 2


class LyingDisk(SimulatedDisk):
    """Says that it has synced, and has not."""

    def sync(self, fd: int) -> None:
        """Do nothing."""


def meddling(state: State) -> Due | None:
    """Decide, and change what was looked at."""
    state.desk.n_turns += 1
    return decide(state)


def test_a_mailbox_that_delivers_twice_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is on record, and the director takes no second one."""
    monkeypatch.setattr(simulation, "VirtualMailbox", TwiceMailbox)
    assert simulate(tmp_path).violation is None


def test_a_director_that_takes_answers_twice_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its evidence would count twice."""
    monkeypatch.setattr(simulation, "VirtualMailbox", TwiceMailbox)
    monkeypatch.setattr(simulation, "Director", GullibleDirector)
    assert "a request has one reply" in (simulate(tmp_path).violation or "")


def test_a_director_that_accepts_without_evidence_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pair was measured."""
    monkeypatch.setattr(simulation, "Director", HastyDirector)
    assert "no accept without evidence" in (simulate(tmp_path).violation or "")


def test_a_director_that_skips_a_verdict_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs are there, and say something else."""
    monkeypatch.setattr(simulation, "Director", FlatteringDirector)
    assert "audit finds nothing: the evidence" in (simulate(tmp_path).violation or "")


def test_a_disk_that_lies_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was acknowledged is gone after a power cut."""
    monkeypatch.setattr(simulation, "SimulatedDisk", LyingDisk)
    rates = CALM.model_copy(update={"power": 200.0})
    assert "acknowledged" in (simulate(tmp_path, rates=rates).violation or "")


def test_device_jobs_that_overlap_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one was under way before the first one was over."""
    monkeypatch.setattr(simulation, "VirtualClock", FastClock)
    found = simulate(tmp_path, rates=CALM).violation or ""
    assert "a job begins when the last one is over" in found


def test_a_decision_that_changes_the_state_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replay would not come to the same state."""
    monkeypatch.setattr(director, "decide", meddling)
    assert "replay equals the live state" in (simulate(tmp_path).violation or "")
