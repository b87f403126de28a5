"""Facts that go from one run into another: as claims, and only what was confirmed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.opening import first_event
from decisions.audit import audit
from events.blobs import Blobs
from events.errors import LogError
from events.log import EventLog, read
from events.projections.state import State, replay
from events.vocabulary import FactChecked, FactJudged, FactProposed, RunStarted
from knowledge.carried import Carried, pack, unpack
from scripts.knowledge import main
from targets.protocol import BuildFailed, Built
from tests.support.fake_target import FakeTarget
from tests.support.runs import SECRET, begin, campaign, ticking

HEAD = "a" * 64
PROBE = {"kernel": "alpha", "source": "time 0.1\nbroken\n", "predicts": "refused"}
FACT = {"fact": 1, "record": 9, "topic": "rule", "kernel": "alpha", "claim": "no broken"}


class MendedTarget(FakeTarget):
    """Builds what the fake target refuses."""

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """Everything builds."""
        return Built(source.encode(), "")


def carried(*facts: dict[str, Any], **fields: Any) -> Carried:
    """A file's content."""
    own = {"run": "far", "head": HEAD, "target": "fake", "toolchain": {}, "facts": facts}
    return Carried.model_validate_json(json.dumps(own | fields))


def begun_with(run: Path, facts: Carried, target: FakeTarget | None = None) -> State:
    """A run to its end that begins with the facts of another."""
    target, blobs, settings = target or FakeTarget(), Blobs(run), campaign(max_candidates=4)
    with EventLog.open(run, ticking()) as log:
        mailbox = LocalMailbox(crew(target, run / "lease", {}, lambda: 0.0))
        boss = Director(log, blobs, mailbox)
        boss.start(
            first_event(
                settings, target, blobs, secret_seed=SECRET, versions={}, facts=(facts, facts)
            )
        )
        return boss.run()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which has learned a rule."""
    folder = tmp_path_factory.mktemp("knowledge") / "run"
    begin(folder, campaign(max_candidates=10))
    return folder


@pytest.fixture(scope="module")
def file(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the run exports."""
    path = tmp_path_factory.mktemp("exported") / "facts.json"
    assert main(["export", str(run), str(path)]) == 0
    return path


# ---- a run that begins with them -----------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "state"), [(FakeTarget(), "confirmed"), (MendedTarget(), "refuted")]
)
def test_what_another_run_believes_is_a_claim_until_its_probe_ran_here(
    tmp_path: Path, target: FakeTarget, state: str
) -> None:
    """It is offered once, proposed before anything else is known of it, and judged by the probe."""
    end = begun_with(tmp_path, carried(FACT | {"probe": PROBE}), target)
    records = list(read(tmp_path))

    proposed = [r for r in records if isinstance(r.event, FactProposed)]
    checked = [r for r in records if isinstance(r.event, FactChecked) and r.event.fact == 1]
    judged = [r for r in records if isinstance(r.event, FactJudged) and r.event.fact == 1]
    assert len(proposed) == len(checked) == len(judged) == 1
    assert proposed[0].event.author == "imported from far"  # type: ignore[union-attr]
    assert proposed[0].because == (0,)
    assert replay(records[: judged[0].seq]).knowledge.states[1] == "proposed"
    assert end.knowledge.states[1] == state
    assert not list(audit(records, Blobs(tmp_path).get, LogError))


def test_what_has_no_probe_stays_proposed(tmp_path: Path) -> None:
    """Nobody here has seen it."""
    end = begun_with(tmp_path, carried(FACT))

    assert end.knowledge.states[1] == "proposed"
    assert not end.knowledge.offers


def test_a_claim_refuses_no_source(tmp_path: Path) -> None:
    """Screening goes by rules that were learned here alone."""
    end = begun_with(tmp_path, carried(FACT | {"probe": PROBE}))

    own = end.knowledge.facts[1]
    assert own.topic == "rule"
    assert 1 not in end.knowledge.rules("alpha")


def test_what_is_about_another_kernel_is_left_out(tmp_path: Path) -> None:
    """Neither a claim on it nor one that would be checked on it."""
    elsewhere = PROBE | {"kernel": "gamma"}
    facts = carried(FACT | {"kernel": "gamma"}, FACT | {"kernel": "", "probe": elsewhere}, FACT)
    begun_with(tmp_path, facts)

    start = next(read(tmp_path)).event
    assert isinstance(start, RunStarted)
    assert [offer.kernel for offer in start.offers] == ["alpha"]


# ---- files ---------------------------------------------------------------------------------


def test_the_file_holds_what_was_confirmed_with_its_program(run: Path, file: Path) -> None:
    """And where it comes from; what is written is read back as it was."""
    state, found = replay(read(run)), unpack(file.read_bytes())

    assert found == pack(state, found.head, Blobs(run).text)
    assert found.toolchain == state.toolchain
    confirmed = [n for n, known in state.knowledge.states.items() if known == "confirmed"]
    assert [fact.fact for fact in found.facts] == confirmed
    rules = [fact for fact in found.facts if fact.topic == "rule"]
    assert rules
    assert all(fact.probe and "broken" in fact.probe.source for fact in rules)


def test_the_same_log_gives_the_same_file(run: Path, file: Path, tmp_path: Path) -> None:
    """To the byte."""
    assert main(["export", str(run), str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_an_export_replaces_one_of_ours_alone(
    run: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip of the hand must not cost a file."""
    theirs, ours = tmp_path / "theirs.json", tmp_path / "ours.json"
    theirs.write_text("{}")
    ours.write_text(carried(FACT).model_dump_json())

    assert main(["export", str(run), str(theirs)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["export", str(run), str(ours)]) == 0

    assert theirs.read_text() == "{}"
    assert ours.read_bytes() == file.read_bytes()


def test_what_is_stale_is_not_exported(run: Path) -> None:
    """Nobody knows whether it still holds."""
    state = replay(read(run))
    state.work_under({"compiler": "fake 2.0"}, state.seq)

    assert not pack(state, HEAD, Blobs(run).text).facts


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"facts": []}',
        carried(FACT).model_dump_json().replace('"fact":1', '"fact":"one"').encode(),
        carried(FACT).model_dump_json().replace('"format":1', '"format":2').encode(),
        carried(FACT).model_dump_json().replace("no broken", "x" * 3000).encode(),
        carried(FACT).model_dump_json()[:-1].encode() + b', "more": 1}',
        carried(FACT | {"probe": PROBE}).model_dump_json().replace("null", "NaN").encode(),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(
    tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anybody may have written it."""
    (tmp_path / "facts.json").write_bytes(data)

    assert main(["import", str(tmp_path / "facts.json"), str(sim(tmp_path))]) == 2

    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "facts.json" in told


def test_a_folder_or_a_huge_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it fills the memory."""
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 40)

    assert main(["import", str(tmp_path), str(sim(tmp_path))]) == 2
    assert "is no file" in capsys.readouterr().err
    assert main(["import", str(huge), str(sim(tmp_path))]) == 2
    assert "larger than" in capsys.readouterr().err


# ---- campaign files ------------------------------------------------------------------------


def sim(folder: Path, more: str = "") -> Path:
    """A campaign of the simulated accelerator."""
    path = folder / "sim.toml"
    kernels = 'preset = "1.0"\nkernels = ["sliding_attention_output"]\n'
    path.write_text(f'name = "x"\ntarget = "sim"\n{kernels}{more}')
    return path


def test_an_import_names_the_file_and_changes_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what would be taken, and what not."""
    theirs = carried(FACT | {"kernel": ""}, FACT, target="sim")
    (tmp_path / "facts.json").write_text(theirs.model_dump_json())
    path = sim(tmp_path)
    before = path.read_text()

    assert main(["import", str(tmp_path / "facts.json"), str(path)]) == 0

    assert path.read_text() == f'{before}\n[knowledge]\nfacts = ["facts.json"]\n'
    told = capsys.readouterr().out
    assert "begin with 1 claims from far" in told
    assert "left out, 1: it is about alpha" in told


def test_a_campaign_that_names_facts_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line to write is said."""
    (tmp_path / "facts.json").write_text(carried(target="sim").model_dump_json())
    path = sim(tmp_path, '[knowledge]\nfacts = ["old.json"]\n')
    before = path.read_text()

    assert main(["import", str(tmp_path / "facts.json"), str(path)]) == 2

    assert path.read_text() == before
    assert 'facts = ["facts.json"]' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "is_changed"), [("[knowledge]\n", True), ("knowledge = {}\n", False)]
)
def test_a_table_that_is_there_gets_the_line_or_is_left(
    tmp_path: Path, more: str, *, is_changed: bool
) -> None:
    """What cannot be changed safely is not changed."""
    (tmp_path / "facts.json").write_text(carried(target="sim").model_dump_json())
    path = sim(tmp_path, more)
    before = path.read_text()

    status = main(["import", str(tmp_path / "facts.json"), str(path)])

    assert status == (0 if is_changed else 2)
    wanted = before + 'facts = ["facts.json"]\n' if is_changed else before
    assert path.read_text() == wanted


@pytest.mark.parametrize(
    ("more", "added"),
    [
        (b"# end\r\n", b"\r\n[knowledge]\r\nFACTS\r\n"),
        (b"[knowledge] # ours\r\n", b"FACTS\r\n"),
        (b"[ knowledge ] # ours\n", b"FACTS\n"),
        (b"[knowledge]", b"\nFACTS\n"),
        (b"# end  ", b"\n\n[knowledge]\nFACTS\n"),
    ],
)
def test_an_import_keeps_every_byte_that_was_there(
    tmp_path: Path, more: bytes, added: bytes
) -> None:
    """The file has an owner, who wrote it as it is."""
    (tmp_path / "facts.json").write_text(carried(target="sim").model_dump_json())
    path = sim(tmp_path)
    end = b"\r\n" if b"\r\n" in more else b"\n"
    before = path.read_bytes().replace(b"\n", end) + more
    path.write_bytes(before)

    assert main(["import", str(tmp_path / "facts.json"), str(path)]) == 0

    assert path.read_bytes() == before + added.replace(b"FACTS", b'facts = ["facts.json"]')


def test_a_name_that_is_no_text_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TOML could not hold it."""
    file = tmp_path / os.fsdecode(b"facts\xff.json")
    file.write_text(carried(target="sim").model_dump_json())

    assert main(["import", str(file), str(sim(tmp_path))]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_facts_of_another_target_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They say nothing about this one."""
    (tmp_path / "facts.json").write_text(carried(target="cpu").model_dump_json())

    assert main(["import", str(tmp_path / "facts.json"), str(sim(tmp_path))]) == 2
    assert "is about target 'cpu'" in capsys.readouterr().err


# ---- the list ------------------------------------------------------------------------------


def test_the_list_says_what_each_fact_rests_on(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Filters take facts away, and say how many there are."""
    state = replay(read(run))

    assert main([str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["fact"] for row in rows] == list(state.knowledge.facts)
    for row in rows:
        assert row["state"] == state.knowledge.states[row["fact"]]
        assert state.knowledge.records[row["fact"]] in row["records"]
        assert row["toolchain"] == state.toolchain_digest

    assert main([str(run), "--kind", "rule", "--kernel", "alpha"]) == 0
    told = capsys.readouterr().out
    rules = [f for f in state.knowledge.facts.values() if (f.topic, f.kernel) == ("rule", "alpha")]
    assert told.splitlines()[-1] == f"{len(rules)} of {len(rows)} facts"
    assert state.toolchain_digest[:12] in told

    assert main([str(run), "--toolchain", "0123456789ab", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
