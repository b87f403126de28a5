"""An upgrade of the toolchain in mid-run: what is believed after it is what is so under it."""

from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from actors.crew import crew
from actors.director import Director
from actors.opening import first_event
from actors.rigged import Rigged
from actors.virtual_mailbox import VirtualMailbox
from decisions.audit import audit
from events.blobs import Blobs
from events.campaign import Acceptance, Campaign, Search
from events.errors import LogError
from events.log import EventLog, read
from events.projections.state import State, replay
from events.vocabulary import FactState, Prediction
from knowledge.carried import Carried, CarriedFact, CarriedProbe
from sim.clock import VirtualClock
from sim.npu.kernels import SIGNATURES
from sim.npu.toolchain import TOOLCHAINS
from targets.protocol import BuildFailed, Target
from targets.sim.build import build
from targets.sim.target import SimTarget

KERNEL = "sliding_attention_output"
BASELINE = files("targets.sim").joinpath("kernels", f"{KERNEL}_baseline.npu").read_text("utf-8")
HEAD = BASELINE.partition("\n# x in every slice")[0]
LOADED = "load x0 from x to head\n"
CLAIMS: dict[str, tuple[Prediction, str, str]] = {
    "A loop may have 8 buffers.": (
        "builds", "", "for t in 0..15 over H buffers 8 { load w from wo to rows }",
    ),
    "One load brings at most 4 tensors.": (
        "refused", "E-LOAD-LIST", "load a, b, c, d, e from x, x, x, x, x to head",
    ),
    "Reduce wants its axis innermost.": (
        "refused", "E-REDUCE-INNER", f"{LOADED}a = main x0 | sum Q | reduce Q | commit dm f32",
    ),
    "An operand in TRF may be spread over 8 lanes.": (
        "builds", "", f"{LOADED}a = main x0 | commit trf bf16 lanes 8",
    ),
    "VRF holds 16,384 bytes in a slice.": ("builds", "", f"{LOADED}a = sub x0 | commit vrf"),
}  # fmt: skip
"""Tightened, relaxed and reworded by version 1.1; the last two are so, or not, in both."""
UNTESTED = "DMA works beside the tensor unit."


def source(name: str) -> str:
    return f"{HEAD}\n{CLAIMS[name][2]}\n"


def carried() -> Carried:
    """The claims, as another run would hand them over."""
    facts = [
        CarriedFact(
            fact=number, record=number, topic="document", kernel="", claim=name,
            probe=CarriedProbe(
                kernel=KERNEL, source=source(name), predicts=predicts, signature=signature
            ),
        )
        for number, (name, (predicts, signature, _)) in enumerate(CLAIMS.items(), 1)
    ]  # fmt: skip
    last = CarriedFact(fact=len(facts) + 1, record=99, topic="document", kernel="", claim=UNTESTED)
    return Carried(run="other", head="0" * 64, target="sim", toolchain={}, facts=(*facts, last))


def truth(version: str) -> dict[str, FactState]:
    """What the compiler of a version itself makes of each claim."""
    states: dict[str, FactState] = {}
    for name, (predicts, signature, _) in CLAIMS.items():
        built = build(source(name), SIGNATURES[KERNEL], TOOLCHAINS[version])
        refused = isinstance(built, BuildFailed)
        assert not isinstance(built, BuildFailed) or built.signature.startswith(signature)
        states[name] = "confirmed" if refused == (predicts == "refused") else "refuted"
    return states


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on version 1.0 that finds itself on 1.1 when all claims have been checked."""
    run = tmp_path_factory.mktemp("upgraded") / "run"
    clock = VirtualClock()
    rig = Rigged(SimTarget("quiet"), clock, lambda: False, 0)
    target = cast("Target", rig)
    campaign = Campaign(
        name="upgraded",
        target="sim",
        preset="quiet",
        kernels=(KERNEL,),
        search=Search(max_candidates=3),
        acceptance=Acceptance(pairs_per_job=1, noise_pairs=4, final_pairs=6),
    )
    with EventLog.open(run, clock.time_ns) as log:
        boss = Director(
            log, Blobs(run), VirtualMailbox(crew(target, run / "lease", {}, clock), clock)
        )
        first = first_event(
            campaign, target, Blobs(run), secret_seed="7" * 64, versions={}, facts=(carried(),)
        )

        def never() -> bool:
            knowledge, best = boss.state.knowledge, boss.state.tree.branches.get(KERNEL)
            is_checked = knowledge.facts and not (knowledge.waiting or knowledge.checked)
            if is_checked and best and best.accepts:
                rig.update(1)
            return False

        boss.start(first)
        assert boss.run(stop=never).finished
    return run


def believed(state: State) -> dict[str, FactState]:
    """What is believed of the claims that were carried over."""
    knowledge = state.knowledge
    told = {fact.claim: knowledge.states[n] for n, fact in knowledge.facts.items()}
    return {name: told[name] for name in (*CLAIMS, UNTESTED)}


def test_before_and_after_it_claims_are_believed_as_they_are_so(folder: Path) -> None:
    """One that held is refuted, one that did not is confirmed, one is only worded otherwise."""
    records = list(read(folder))
    change = next(r.seq for r in records if r.event.kind == "toolchain_changed")

    assert truth("1.0") != truth("1.1")
    assert believed(replay(records[:change])) == {**truth("1.0"), UNTESTED: "proposed"}
    assert believed(replay(records)) == {**truth("1.1"), UNTESTED: "stale"}


def test_the_best_version_was_accepted_before_and_is_built_again_after_it(folder: Path) -> None:
    """Figures at the end are of the new toolchain."""
    records = list(read(folder))
    change = next(r.seq for r in records if r.event.kind == "toolchain_changed")
    best = replay(records[:change]).tree.incumbent(KERNEL)
    end = replay(records)
    renewed = end.tree.nodes[best.candidate]

    assert best.is_search
    assert renewed.artifact not in (None, best.artifact)
    assert renewed.toolchain == end.toolchain_digest
    assert end.finished is not None
    assert end.finished.geomean is not None
    assert end.finished.geomean > 1


def test_audit_derives_all_of_it(folder: Path) -> None:
    """Checks, verdicts and the renewal follow from the record."""
    assert list(audit(read(folder), Blobs(folder).get, LogError)) == []
