"""Campaigns on the simulated NPU, from the campaign file to the audit."""

from math import exp, fsum, log
from pathlib import Path

import pytest

from actors.simulation import Outcome, Simulation
from decisions.audit import audit
from events.blobs import Blobs
from events.campaign import Campaign
from events.errors import LogError
from events.log import read
from events.projections.state import replay
from events.segments import segment_path
from events.vocabulary import CandidateExamined, ToolchainChanged
from scripts.campaign_file import load
from scripts.run import main
from sim.rates import CALM, Rates
from targets.sim.target import SimTarget

EXAMPLES = Path(__file__).parents[2] / "examples"
N_CANDIDATES = 100
BUSY = Rates(kill=20, torn=10, power=10, full=10, node=20, update=12, pause=10, hang=0.05)
"""Some of everything within an hour or two."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases and run folders are ours."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def small(n: int) -> Campaign:
    """The newcomer's campaign with ``n`` candidates."""
    campaign = load(EXAMPLES / "sim-small" / "campaign.toml")
    search = campaign.search.model_copy(update={"max_candidates": n})
    return campaign.model_copy(update={"search": search})


def simulated(run: Path, rates: Rates, seed: int, n: int = 8) -> Outcome:
    return Simulation(run, small(n), SimTarget("1.0"), rates, seed).finish()


@pytest.mark.timeout(600)
def test_twelve_days_in_small(tmp_path: Path) -> None:
    """The example, cut short: it finds much of what there is to find, and every record holds."""
    text = (EXAMPLES / "twelve-days" / "campaign.toml").read_text(encoding="utf-8")
    assert "max_candidates = 3600 " in text
    file, run = tmp_path / "small.toml", tmp_path / "run"
    short = text.replace("max_candidates = 3600 ", f"max_candidates = {N_CANDIDATES} ")
    file.write_text(short.replace("max_designs = 16 ", "max_designs = 8 "))
    assert main([str(file), "--out", str(run), "--quiet"]) == 0

    records = list(read(run))
    state = replay(records)
    assert state.tree.n_search >= 0.9 * N_CANDIDATES
    assert list(audit(records, Blobs(run).get, LogError)) == []
    assert (records[-1].time_ns - records[0].time_ns) / 86_400e9 > 0.1

    target, gains = SimTarget("1.0"), []
    for kernel, branch in state.tree.branches.items():
        nodes = (state.tree.nodes[c] for c in (branch.baseline, branch.incumbent) if c is not None)
        times = [target.truth(kernel, Blobs(run).get(n.artifact)) for n in nodes if n.artifact]
        gains.append(log(times[0] / times[-1]))
    assert exp(fsum(gains) / len(gains)) > 1.5


def test_the_same_seed_gives_the_same_log(tmp_path: Path) -> None:
    """With every fault there is: nothing in the target depends on the process or the hour."""
    outcomes = [simulated(tmp_path / name, BUSY, 3) for name in ("one", "two")]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].violation is None
    simulated(tmp_path / "three", BUSY, 4)
    one, two, three = (
        segment_path(tmp_path / name, 0).read_bytes() for name in ("one", "two", "three")
    )
    assert one == two
    assert one != three


def test_an_update_in_mid_run_leads_to_the_next_version(tmp_path: Path) -> None:
    """The actors notice it, and the run goes on under the version that is there."""
    rates = CALM.model_copy(update={"update": 200.0})
    outcome = simulated(tmp_path / "run", rates, 5, n=12)
    assert outcome.violation is None
    events = [record.event for record in read(tmp_path / "run")]
    told = [e.toolchain["compiler"] for e in events if isinstance(e, ToolchainChanged)]
    assert told[0] == "npu 1.1"
    assert set(told) == {"npu 1.1", "npu 1.2"}
    assert len({e.toolchain for e in events if isinstance(e, CandidateExamined)}) > 1
