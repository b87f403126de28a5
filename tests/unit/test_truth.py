"""What only a simulated run can tell: claims beside the truth, and a device that had work to do."""

import itertools
import json
import math
from pathlib import Path

import pytest

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.opening import first_event
from events.blobs import Blobs
from events.log import EventLog
from events.projections.state import State
from events.projections.tree import Status
from events.vocabulary import CandidateAccepted, CandidateShelved, RunResumed
from scripts import report, runs
from scripts.reporting.history import Run, load
from scripts.reporting.truth import MISSED, Truth, truth
from scripts.reporting.waiting import waiting
from scripts.truth import main
from targets.protocol import Target
from tests.support.fake_target import FakeTarget, facts_of
from tests.support.runs import SECRET, begin, campaign


class Devious(FakeTarget):
    """Its truth is not what it lets the device measure."""

    def truth(self, kernel: str, artifact: bytes) -> float:
        """Half is no faster than the baseline, slower is fast, and what crashes never does."""
        return {"0.5": 1.0, "1.4": 0.1}.get(facts_of(artifact.decode())["time"], 0.25)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on clocks that move: three seconds per record, two per device job."""
    path = tmp_path_factory.mktemp("runs") / "finished"
    target, ticks, seconds = FakeTarget(), itertools.count(), itertools.count()
    with EventLog.open(path, lambda: 3 * 10**9 * next(ticks)) as record:
        actors = crew(target, path / "lease", {}, clock=lambda: 2.0 * next(seconds))
        boss = Director(record, Blobs(path), LocalMailbox(actors))
        settings = campaign(max_candidates=40)
        boss.start(first_event(settings, target, Blobs(path), secret_seed=SECRET, versions={}))
        boss.run()
    return path


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """The same, read back."""
    return load(folder)


def truth_by(target: FakeTarget, run: Run, folder: Path) -> Truth:
    return truth(run, Blobs(folder).get, target)


def offer(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """Make a target the one that every run's campaign means."""
    monkeypatch.setattr(runs, "load_target", lambda name, preset: target)


def test_true_claims_are_told_true(run: Run, folder: Path) -> None:
    """The fake device's noise is small, so that every accept of this run is a gain."""
    found = truth_by(FakeTarget(), run, folder)

    accepts = [r.event for r in run.records if isinstance(r.event, CandidateAccepted)]
    assert [claim.candidate for claim in found.claims] == [event.candidate for event in accepts]
    assert all(abs(claim.true - claim.effect) < 1 for claim in found.claims)
    assert (found.n_false, found.n_worse, found.n_covered) == (0, 0, len(accepts))
    assert found.misses == ()
    assert found.captured == 1.0


def test_speed_up_and_bound_are_those_of_the_best_version(run: Run, folder: Path) -> None:
    """The product of the true effects is the true speed-up: nothing else changes a version."""
    found = truth_by(FakeTarget(), run, folder)

    assert [kernel.kernel for kernel in found.kernels] == list(run.kernels)
    for kernel in found.kernels:
        own = [claim.true for claim in found.claims if claim.kernel == kernel.kernel]
        assert kernel.speedup == pytest.approx(math.exp(-math.fsum(own) / 100))
        assert kernel.time_over_bound == pytest.approx(1 / kernel.speedup / 0.19)
    product = math.prod(kernel.speedup for kernel in found.kernels)
    assert found.geomean == pytest.approx(product ** (1 / len(found.kernels)))


def test_an_accept_of_no_gain_is_false_though_it_is_not_slower(run: Run, folder: Path) -> None:
    """The test's promise is about equal candidates too; only slower ones do harm."""
    found = truth_by(Devious(), run, folder)

    false = [claim for claim in found.claims if claim.is_false]
    assert 0.0 in [claim.true for claim in false]
    assert found.n_false == len(false)
    assert found.n_worse == sum(claim.true > 0 for claim in false)
    assert found.n_covered == sum(c.low <= c.true <= c.high for c in found.claims)
    assert found.n_covered < len(found.claims)


def test_a_gain_that_was_set_aside_is_missed(run: Run, folder: Path) -> None:
    """A rule that accepts nothing would make no mistake either."""
    found = truth_by(Devious(), run, folder)

    missed = [run.state.tree.nodes[miss.candidate] for miss in found.misses]
    assert {node.move for node in missed} == {"design:slower"}
    assert {node.status for node in missed} <= {Status.REJECTED, Status.SHELVED}
    assert all(miss.true < -MISSED for miss in found.misses)
    taken = math.fsum(-claim.true for claim in found.claims)
    gains = math.fsum(-claim.true for claim in found.claims if not claim.is_false)
    offered = gains + math.fsum(-miss.true for miss in found.misses)
    assert found.captured == pytest.approx(taken / offered)


def test_a_candidate_that_fails_on_the_device_offers_nothing(run: Run, folder: Path) -> None:
    """However fast it is: a wrong or crashing version cannot be used."""
    crashed = {n.candidate for n in run.state.tree.nodes.values() if n.move == "design:crash"}

    assert crashed
    assert not crashed & {miss.candidate for miss in truth_by(Devious(), run, folder).misses}


def test_an_idea_is_missed_once_and_not_on_every_best_version(run: Run, folder: Path) -> None:
    """The catalogue tries a move again after each accept; its gain is one gain."""

    class Steep(FakeTarget):
        """Every knob but the first would halve the time."""

        def truth(self, kernel: str, artifact: bytes) -> float:
            return 0.5 if facts_of(artifact.decode()).get("knob") == "2" else 1.0

    found = truth_by(Steep(), run, folder)

    moves = [(m.kernel, run.state.tree.nodes[m.candidate].move) for m in found.misses]
    proposed = [n for n in run.state.tree.nodes.values() if n.move == "step:2"]
    assert {move for _, move in moves} == {"step:2"}
    assert len(moves) == len(set(moves)) < len(proposed)


def test_steps_in_flight_are_compared_with_the_version_they_were_made_for(
    run: Run, folder: Path
) -> None:
    """A step whose parent was replaced has a verdict without a pair."""
    shelved = [r.event for r in run.records if isinstance(r.event, CandidateShelved)]

    assert any(event.n_pairs == 0 for event in shelved)
    assert truth_by(FakeTarget(), run, folder).misses == ()


def test_the_device_has_work_while_a_candidate_is_fit_and_without_a_verdict(run: Run) -> None:
    """The same from the state after every record, which knows nothing of the shortcut."""
    state, waited_s = State(), 0.0
    for before, record in itertools.pairwise((run.records[0], *run.records)):
        if _waits(state):
            waited_s += (record.time_ns - before.time_ns) / 1e9
        state.apply(record)

    found = waiting(run)

    assert found.waited_s == pytest.approx(waited_s)
    assert 0 < found.worked_s < found.waited_s


def _waits(state: State) -> bool:
    nodes = [state.tree.nodes[c] for b in state.tree.branches.values() for c in b.open]
    return not state.closed and any(node.status is Status.QUEUED for node in nodes)


def test_a_stop_of_the_run_is_no_idle_device(run: Run) -> None:
    """As for the wall time: nobody could have worked."""
    at, pause_ns = len(run.records) // 2, 10**15
    later = [r._replace(time_ns=r.time_ns + pause_ns) for r in run.records[at:]]
    resumed = later[0]._replace(event=RunResumed(versions={}, toolchain={}))

    stopped = Run((*run.records[: at + 1], resumed, *later[1:]), run.state, run.head)

    assert waiting(stopped) == waiting(run)


def test_the_command_tells_people_all_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each accept and each missed gain, and the run's figures."""
    offer(monkeypatch, Devious())

    assert main([str(folder)]) == 0

    told = capsys.readouterr().out
    found = truth_by(Devious(), load(folder), folder)
    assert f"{len(found.claims)} accepts: {found.n_false} false ({found.n_worse} truly" in told
    assert told.count("FALSE") == found.n_false
    assert all(f"c{c.candidate} {c.kernel}: claimed" in told for c in (*found.claims,))
    assert f"geomean {found.geomean:.3f}x" in told
    assert "test 5" in told
    assert "device at work while a candidate waited: " in told
    assert "38 candidates" in told


def test_the_command_tells_programs_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One JSON object, numbers unrounded."""
    offer(monkeypatch, FakeTarget())

    assert main([str(folder), "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    found = truth_by(FakeTarget(), load(folder), folder)
    assert told["geomean"] == found.geomean
    assert [c["true"] for c in told["claims"]] == [c.true for c in found.claims]
    assert sum(told["device_s_by_purpose"].values()) == pytest.approx(told["device_s"])
    assert 0 < told["worked_s"] < told["waited_s"] < 86_400 * told["days"]


def test_a_target_that_does_not_know_the_truth_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fake target is not installed, so nobody can be asked."""
    assert main([str(folder)]) == 2

    assert "nobody knows the truth of target 'fake'" in capsys.readouterr().err


def test_the_report_shows_the_truth_where_it_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other runs have no such section, and no link to it."""
    out = tmp_path / "page.html"
    report.main([str(folder), "--out", str(out)])
    plain = out.read_text("utf-8")
    offer(monkeypatch, Devious())

    report.main([str(folder), "--out", str(out)])

    page = out.read_text("utf-8")
    assert "Claimed and true gains" in page
    assert "no agent and no decision has seen it" in page
    assert page.count('"#truth"') == page.count('id="truth"') == 1
    assert "#truth" not in plain


def test_a_report_without_artifacts_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Artifacts may be pruned; the rest of the page does not need them."""
    state = begin(tmp_path, campaign(max_candidates=1))
    baseline = state.tree.incumbent("alpha").artifact or ""
    Blobs(tmp_path).remove_all([baseline])
    offer(monkeypatch, FakeTarget())

    assert report.main([str(tmp_path)]) == 0
    assert "without the section on the truth: " in capsys.readouterr().err

    assert main([str(tmp_path)]) == 1
    assert baseline in capsys.readouterr().err
