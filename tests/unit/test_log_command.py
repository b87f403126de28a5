"""``kernelwright log``: what it says of a run, and of a run that somebody has touched."""

import errno
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from events import codec, segments
from events.blob_names import blobs_of
from events.blobs import Blobs
from events.damage import survey
from events.disk import DISK, Disk
from events.log import Entry, EventLog, batches, holds_log, read, read_head
from events.segments import segment_path, segments_of
from events.tail import Tail
from events.vocabulary import LogRepaired, Record, RunInterrupted
from scripts import log
from scripts.records.lines import as_text
from tests.support.cli import command
from tests.support.logs import last_segment, write
from tests.support.pack_files import flip, spoil
from tests.support.runs import begin, campaign, ticking

DOCS = Path(__file__).parents[2] / "docs" / "log.md"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run in several segments; tests do not change it."""
    folder = tmp_path_factory.mktemp("log") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "MAX_RECORDS", 60)
        begin(folder, campaign(max_candidates=12))
    assert len(segments_of(folder)) > 2
    return folder


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it to be changed."""
    return Path(shutil.copytree(recorded, tmp_path / "run"))


def verified(run: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    """Verify; return the exit status and what the JSON says."""
    status = log.main(["verify", str(run), "--json", *more])
    return status, json.loads(capsys.readouterr().out)


# ---- verify --------------------------------------------------------------------------------


def test_a_whole_run_verifies_and_its_head_is_the_noted_one(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The head is the same wherever it is printed."""
    assert log.main(["head", str(recorded)]) == 0
    head = capsys.readouterr().out.strip()

    status, said = verified(recorded, capsys, "--head", head)

    assert (status, said["whole"], said["head_difference"]) == (0, True, None)
    assert said["head"] == head == read_head(recorded)
    assert said["records"] == len(list(read(recorded)))
    assert (said["orphans"], said["torn_bytes"], said["pruned"]) == ([], 0, 0)


def test_any_flipped_byte_is_named_by_file_byte_and_record(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batch that holds the byte is the first that cannot be trusted."""
    frames = [frame for frame, _ in batches(run)]
    for frame in frames[:: len(frames) // 12]:
        path = segment_path(run, frame.start.segment)
        whole = path.read_bytes()
        data = bytearray(whole)
        data[(frame.start.offset + frame.end.offset) // 2] ^= 0x10
        path.write_bytes(data)

        status, said = verified(run, capsys)

        place = {"file": str(path), "offset": frame.start.offset, "seq": frame.start.seq}
        assert status == 1
        assert place.items() <= said["damage"][-1].items()
        path.write_bytes(whole)


def test_a_missing_and_a_changed_blob_are_named_with_the_record_that_needs_them(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are named, in the order of the log, and the log itself is whole."""
    blobs = Blobs(run)
    names = {sha: r.seq for r in reversed(list(read(run))) for sha in blobs_of(r.event)}
    gone, changed = sorted(names, key=names.__getitem__)[3:5]
    blobs.remove_all([gone])
    spoil(run, changed)

    status, said = verified(run, capsys)

    assert status == 1
    pack, offset = blobs.place(changed)
    assert [(Path(d["file"]), d["offset"], d["seq"]) for d in said["damage"]] == [
        (blobs.root, 0, names[gone]),
        (pack, offset, names[changed]),
    ]
    assert gone in said["damage"][0]["reason"]
    assert log.main(["verify", str(run)]) == 1
    assert capsys.readouterr().out.startswith(f"DAMAGED {blobs.root}: record {names[gone]} ")


def test_any_flipped_bit_of_a_blob_is_named_by_pack_and_place(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever restores it from a copy needs to know where."""
    blobs = Blobs(run)
    names = {sha: r.seq for r in reversed(list(read(run))) for sha in blobs_of(r.event)}
    sha = max(names, key=blobs.stored_bytes)
    pack, offset = blobs.place(sha)
    for byte in (*range(49), 100, blobs.stored_bytes(sha) - 1):
        flip(pack, offset + byte)
        status, said = verified(run, capsys)
        found = [(Path(d["file"]), d["offset"], d["seq"]) for d in said["damage"]]
        assert status == 1
        assert found[-1] == (pack, offset, names[sha])
        assert sha in said["damage"][0]["reason"]
        flip(pack, offset + byte)
    flip(pack, 3)
    assert verified(run, capsys)[1]["damage"][0]["offset"] == 0


def test_blobs_that_nothing_names_and_a_torn_tail_are_no_damage(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash leaves both behind."""
    orphan = Blobs(run).put(b"nobody names this")
    with last_segment(run).open("ab") as file:
        file.write(b"torn")

    status, said = verified(run, capsys)

    assert (status, said["torn_bytes"]) == (0, 4)
    assert said["orphans"] == [orphan]


def test_a_head_noted_earlier_tells_a_longer_log_from_a_rebuilt_one(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain can be rebuilt by anyone; the noted head cannot."""
    noted, n = read_head(run), len(list(read(run)))
    with EventLog.open(run, ticking()) as writer:
        writer.append([Entry(RunInterrupted(reason="more"), "director")])

    status, said = verified(run, capsys, "--head", noted)
    assert (status, said["whole"], said["records_under_noted_head"]) == (1, True, n)
    assert f"its first {n} records are those of then, 1 have been added" in said["head_difference"]

    rebuilt = run.parent / "rebuilt"
    with EventLog.open(rebuilt, ticking()) as writer:
        writer.append([Entry(RunInterrupted(reason="another story"), "director")])
    status, said = verified(rebuilt, capsys, "--head", noted)
    assert (status, said["whole"], said["records_under_noted_head"]) == (1, True, None)
    assert "somebody has rebuilt the chain" in said["head_difference"]
    assert "shorter" in said["head_difference"]


def test_what_is_no_head_is_a_mistake_in_the_call(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shortened hash would be a weaker promise than it looks."""
    assert log.main(["verify", str(recorded), "--head", "abc"]) == 2
    assert "64 hex digits" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_a_mistake_in_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is created by asking."""
    asked = [["verify"], ["head"], ["cat"], ["tail"], ["stat"], ["prune", "--blobs", "prompt"]]
    for name, *more in [*asked, ["export", "--parquet", str(tmp_path / "tables")]]:
        assert log.main([name, str(tmp_path / "none"), *more]) == 2
        assert "no such log" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# ---- cat and tail --------------------------------------------------------------------------


def test_cat_prints_the_records_asked_for(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several kinds, from one record to another, ends included."""
    kinds = ("candidate_proposed", "candidate_screened")
    wanted = [r for r in read(recorded) if r.event.kind in kinds and 3 <= r.seq <= 40]
    options = ["--since", "3", "--until", "40", *(w for kind in kinds for w in ("--kind", kind))]

    assert log.main(["cat", str(recorded), *options]) == 0
    assert capsys.readouterr().out.splitlines() == [as_text(r) for r in wanted]

    assert log.main(["cat", str(recorded), *options, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [TypeAdapter(Record).validate_json(line) for line in lines] == wanted


def test_an_unknown_kind_is_answered_with_the_nearest(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt kind must not look like a run without such records."""
    assert log.main(["cat", str(recorded), "--kind", "candidate_acepted"]) == 2
    assert "the nearest kind is 'candidate_accepted'" in capsys.readouterr().err


def test_a_line_is_one_line_and_hides_no_character() -> None:
    """What agents wrote can neither end a line nor move the cursor."""
    event = RunInterrupted(reason="a\nb\x1b[2J\u202e")
    line = as_text(Record(seq=7, time_ns=1_500_000_000, actor="x\x07", because=(3, 4), event=event))

    assert line.isprintable()
    assert line.split() == [
        "7", "1970-01-01", "00:00:01.500Z", "x\\u0007", "run_interrupted",
        'reason="a', 'b\\\\u001b[2J\\\\u202e"', "<-", "3,4",
    ]  # fmt: skip


def test_the_secret_seed_is_not_shown_to_people(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A screen is seen by many; `--json` is the whole record."""
    assert log.main(["cat", str(recorded), "--kind", "run_started"]) == 0
    assert "secret_seed" not in capsys.readouterr().out


def test_tail_prints_the_last_records(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So many as asked for."""
    assert log.main(["tail", "-n", "3", str(recorded)]) == 0
    assert capsys.readouterr().out.splitlines() == [as_text(r) for r in list(read(recorded))[-3:]]
    assert log.main(["tail", "-n", "-1", str(recorded)]) == 2


def test_a_follower_never_sees_half_a_record(recorded: Path, tmp_path: Path) -> None:
    """A batch appears when its last byte is there, whatever of it came before."""
    data, live = segment_path(recorded, 0).read_bytes(), segment_path(tmp_path, 0)
    live.parent.mkdir()
    ends = [frame.end for frame, _ in batches(recorded)][:6]
    live.write_bytes(data[: ends[0].offset])
    tail = Tail(tmp_path)
    assert len(list(tail.fresh())) == ends[0].seq

    for before, end in itertools.pairwise(ends):
        for cut in (before.offset + 1, before.offset + 70, end.offset - 1):
            live.write_bytes(data[:cut])
            assert list(tail.fresh()) == []
        live.write_bytes(data[: end.offset])
        assert [r.seq for r in tail.fresh()] == list(range(before.seq, end.seq))


def test_following_a_live_run_ends_cleanly_on_ctrl_c(run: Path) -> None:
    """It needs no lock: a writer has it meanwhile."""
    following = subprocess.Popen(
        command("log", "tail", "-f", "-n", "1", run), stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    try:
        assert "run_finished" in following.stdout.readline()
        with EventLog.open(run, ticking()) as writer:
            writer.append([Entry(RunInterrupted(reason="something new"), "director")])
            assert "something new" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=30) == 0
    finally:
        following.kill()
        following.stdout.close()
        following.wait()


# ---- stat ----------------------------------------------------------------------------------


def test_stat_accounts_for_every_record_blob_and_file(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal blobs count once, and the parts of the folder add up."""
    assert log.main(["stat", str(recorded)]) == 0
    out = capsys.readouterr().out.replace(",", "")
    records, blobs, folder = (part.splitlines() for part in out.split("\n\n"))

    n_records = len(list(read(recorded)))
    assert records[-1].split()[:2] == ["all", str(n_records)]
    distinct = {sha for r in read(recorded) for sha in blobs_of(r.event)}
    assert blobs[-1].split()[:2] == ["all", str(len(distinct))]
    sizes = {p: p.stat().st_size for p in recorded.rglob("*") if p.is_file()}
    assert [int(line.split()[-1]) for line in folder] == [
        sum(size for p, size in sizes.items() if p.suffix == ".seg"),
        sum(size for p, size in sizes.items() if p.suffix == ".idx"),
        sum(size for p, size in sizes.items() if p.parts[-2] == "blobs"),
        sum(sizes[recorded / name] for name in ("acknowledged", "LOCK", "lease")),
    ]


# ---- export and import ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of the run, with its blobs."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("export") / "tables"
    assert log.main(["export", str(recorded), "--parquet", str(folder), "--with-blobs"]) == 0
    return folder


def test_an_import_is_the_same_run_to_the_byte(
    recorded: Path, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So its head is the same, and it can be verified, audited and gone on with."""
    out = tmp_path / "again"

    assert log.main(["import", str(tables), "--out", str(out)]) == 0

    logs = [
        {p.name: p.read_bytes() for p in (run / "log").glob("*.seg")} for run in (out, recorded)
    ]
    assert logs[0] == logs[1]
    capsys.readouterr()
    assert verified(out, capsys, "--head", read_head(recorded))[0] == 0
    with EventLog.open(out, ticking()) as writer:
        assert writer.repaired is None


@pytest.mark.parametrize("n_last", [0, 2])
def test_an_import_keeps_who_wrote_and_sealed_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_last: int
) -> None:
    """Even after a crash between a seal and the next segment."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(segments, "MAX_RECORDS", 3)
    run, tables, out = (tmp_path / name for name in ("run", "tables", "out"))
    for texts in ("ab", "cdef", "", "ghi"):
        write(run, *texts)
    write(run, *"jk"[:n_last], "l")
    if n_last == 0:
        last_segment(run).unlink()
        (run / "acknowledged").unlink()

    assert log.main(["export", str(run), "--parquet", str(tables)]) == 0
    assert log.main(["import", str(tables), "--out", str(out)]) == 0

    logs = [{p.name: p.read_bytes() for p in (run / "log").glob("*.seg")} for run in (out, run)]
    assert logs[0] == logs[1]


def test_the_export_of_an_older_versions_run_tells_both_heads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever noted the run's head must not take the import for a rebuilt chain."""
    pytest.importorskip("pyarrow")
    run, tables, out = (tmp_path / name for name in ("run", "tables", "out"))
    with monkeypatch.context() as older:
        older.setattr(codec, "SCHEMA", bytes(32))
        write(run, "a")

    assert log.main(["export", str(run), "--parquet", str(tables)]) == 0
    said = capsys.readouterr().out
    assert log.main(["import", str(tables), "--out", str(out)]) == 0

    assert f"head {read_head(run)}\n" in said
    assert said.split()[-1] == read_head(out) != read_head(run)


def test_an_existing_run_is_not_imported_over(
    run: Path, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does an export go into a folder that holds something."""
    assert log.main(["import", str(tables), "--out", str(run)]) == 2
    assert log.main(["export", str(run), "--parquet", str(tables)]) == 2
    assert capsys.readouterr().err.count("is not empty") == 2


def test_a_changed_table_is_not_imported(
    recorded: Path, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The head that was exported goes with it."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "changed"
    folder.mkdir()
    table = pq.read_table(tables / "records.parquet")
    actors = ["somebody", *table.column("actor").to_pylist()[1:]]
    changed = table.set_column(table.schema.get_field_index("actor"), "actor", pa.array(actors))
    about = pq.read_metadata(tables / "records.parquet").metadata
    named = {k: v for k, v in about.items() if k.startswith(b"kernelwright")}
    pq.write_table(changed.replace_schema_metadata(named), folder / "records.parquet")

    assert log.main(["import", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert "the table has been changed" in capsys.readouterr().err

    (folder / "records.parquet").write_bytes(b"PAR1 no table PAR1")
    assert log.main(["import", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert log.main(["import", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_any_damage_to_a_table_is_one_line(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that Arrow or a record's type has to say of it is a defect of ours."""
    whole, folder = (tables / "records.parquet").read_bytes(), tmp_path / "damaged"
    folder.mkdir()
    for n in range(60):
        data = bytearray(whole)
        data[len(data) * n // 60] ^= 1 << n % 8
        (folder / "records.parquet").write_bytes(data)
        out = tmp_path / f"out{n}"
        status = log.main(["import", str(folder), "--out", str(out)])
        said = capsys.readouterr()
        if status:
            assert (status, said.err.count("\n"), out.exists()) == (2, 1, False)
        else:
            assert said.out.split()[-1] == read_head(out)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("segments", b"[[0, -1, null]]"),
        ("segments", b'[[0, 1, "x"]]'),
        ("segments", b"{"),
        ("log_id", b"no hex"),
        ("head", None),
    ],
)
def test_odd_words_about_a_table_are_one_line(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: bytes | None
) -> None:
    """They are the file's own, which anybody may have written."""
    pq = pytest.importorskip("pyarrow.parquet")
    about = pq.read_metadata(tables / "records.parquet").metadata
    named = {k: v for k, v in about.items() if k.startswith(b"kernelwright")}
    named[f"kernelwright.{key}".encode()] = value
    table = pq.read_table(tables / "records.parquet")
    changed = {k: v for k, v in named.items() if v is not None}
    pq.write_table(table.replace_schema_metadata(changed), tmp_path / "records.parquet")

    assert log.main(["import", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_import_that_a_full_disk_breaks_off_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first segments alone would pass for a whole log that is shorter."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(segments, "MAX_RECORDS", 3)
    run, tables, out = (tmp_path / name for name in ("run", "tables", "out"))
    write(run, *"abcdefg")
    assert log.main(["export", str(run), "--parquet", str(tables)]) == 0

    def create(path: Path, data: bytes) -> None:
        if path.name == segments.segment_name(6):
            raise OSError(errno.ENOSPC, "No space left on device")
        DISK.create(path, data)

    disk = Disk()
    monkeypatch.setattr(disk, "create", create)
    monkeypatch.setattr("scripts.records.inward.DISK", disk)

    assert log.main(["import", str(tables), "--out", str(out)]) == 1
    assert not holds_log(out)
    assert log.main(["verify", str(out)]) == 2


def test_the_tables_hold_every_record_typed(recorded: Path, tables: Path) -> None:
    """One table per kind; scalars are scalars, times are times, pairs are lists of structs."""
    pq = pytest.importorskip("pyarrow.parquet")
    records = list(read(recorded))
    kinds = {record.event.kind for record in records}
    assert {p.stem for p in tables.glob("*.parquet")} == kinds | {"records"}

    for kind in kinds:
        rows = pq.read_table(tables / f"{kind}.parquet", columns=["seq"]).to_pylist()
        assert [row["seq"] for row in rows] == [r.seq for r in records if r.event.kind == kind]
    types = {f.name: str(f.type) for f in pq.read_schema(tables / "pairs_measured.parquet")}
    assert types["seq"] == types["job"] == "int64"
    assert types["time"] == "timestamp[ns, tz=UTC]"
    assert re.fullmatch(r"list<.*int64>", types["because"])
    assert re.fullmatch(
        r"list<.*struct<candidate_first: bool, incumbent_s: double.*", types["pairs"]
    )


def test_no_pyarrow_is_one_line_that_says_how_to_install_it(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Everything else works without it."""
    monkeypatch.setattr("scripts.records.arrow.find_spec", lambda name: None)

    assert log.main(["export", str(recorded), "--parquet", str(tmp_path / "t")]) == 2
    assert capsys.readouterr().err == (
        "kernelwright: Parquet needs pyarrow: pip install 'kernelwright[parquet]'\n"
    )


def test_only_export_and_import_load_pyarrow(recorded: Path) -> None:
    """It takes a second to import."""
    code = (
        "import sys; from scripts.main import main;"
        f"main(['log', 'head', {str(recorded)!r}]); print('pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split()[-1] == "False"


def queries() -> list[str]:
    """The queries of the page on the log."""
    return re.findall(r"```sql\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)


def test_the_page_on_the_log_has_three_questions() -> None:
    """Each is asked below."""
    assert len(queries()) == 3


@pytest.mark.parametrize("query", queries())
def test_the_queries_of_the_page_on_the_log_have_answers(
    query: str, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader copies them."""
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tables.parent)

    rows = duckdb.sql(query).fetchall()

    assert rows
    assert all(rows[0][i] is not None for i in range(2))


def test_a_repaired_tail_is_known_by_its_blob(run: Path) -> None:
    """What a crash tore off is evidence too."""
    with last_segment(run).open("ab") as file:
        file.write(b"torn")
    with EventLog.open(run, ticking()) as writer:
        assert isinstance(writer.repaired, LogRepaired)
        writer.append([Entry(writer.repaired, "director")])

    found = survey(run)

    assert (found.damage, found.orphans, found.torn_bytes) == ([], [], 0)
