"""Rules of the evidence of one candidate: all of it, from the rows, whatever the indexes say."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.histories import long_run, write
from events import codec, frames, segments
from events.damage import survey
from events.errors import LogCorruptError, LogMissingError
from events.evidence import records_about
from events.index import Index, index_path, load, store
from events.log import EventLog, read
from events.reading import read_end
from events.segments import SEAL_BYTES, segment_path, segments_of
from events.vocabulary import CandidateProposed, Record, Reply
from scripts import log
from tests.support.crash_disk import QUICK
from tests.support.logs import clock

N_RECORDS = 1560


@pytest.fixture(scope="module", autouse=True)
def short_segments() -> Iterator[None]:
    """A segment takes 100 records, so that evidence is spread over several."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segments, "MAX_RECORDS", 100)
        yield


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(long_run(N_RECORDS))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> Path:
    folder = tmp_path_factory.mktemp("evidence") / "run"
    write(folder, records)
    return folder


@pytest.fixture
def run(tmp_path: Path, written: Path) -> Path:
    """A run of 15 sealed segments and an open one."""
    return shutil.copytree(written, tmp_path / "run")


def scanned(run: Path, candidate: int) -> list[Record]:
    """What `records_about` promises, by reading everything."""
    records = list(read(run))
    own = {r.seq for r in records if getattr(r.event, "candidate", None) == candidate}
    proposals = [r for r in records if r.seq in own and isinstance(r.event, CandidateProposed)]
    causes = {seq for proposal in proposals for seq in proposal.because}
    replies = [r for r in records if isinstance(r.event, Reply) and r.because]
    found = own | {r.seq for r in replies if r.because[0] in own or r.seq in causes}
    return [record for record in records if record.seq in found]


def candidates(records: list[Record]) -> list[int]:
    return [r.event.candidate for r in records if isinstance(r.event, CandidateProposed)]


def indexes(run: Path) -> list[Path]:
    return [index_path(segment_path(run, first)) for first in segments_of(run)[:-1]]


def of(run: Path, first: int) -> tuple[Path, Index, bytes]:
    """A sealed segment, its index, and the digest in its seal."""
    path = segment_path(run, first)
    digest = path.read_bytes()[-SEAL_BYTES:][20:52]
    found = load(path, first, digest)
    assert found is not None
    return path, found, digest


# ---- all of it -----------------------------------------------------------------------------


def test_the_evidence_is_that_of_a_scan(run: Path, records: list[Record]) -> None:
    """Also where a reply is in another segment than its request."""
    for candidate in candidates(records):
        assert scanned(run, candidate) == records_about(run, candidate)


def test_it_is_so_in_a_log_of_one_open_segment(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one has no index."""
    monkeypatch.setattr(segments, "MAX_RECORDS", N_RECORDS)
    write(tmp_path, records)

    for candidate in candidates(records)[::9]:
        assert scanned(tmp_path, candidate) == records_about(tmp_path, candidate)


def test_what_agents_said_and_what_the_device_measured_is_part_of_it(
    run: Path, records: list[Record]
) -> None:
    """A verdict rests on them, although neither names the candidate."""
    kinds = {r.event.kind for c in candidates(records) for r in records_about(run, c)}

    assert {"role_replied", "pairs_measured"} <= kinds


def test_of_an_unknown_candidate_there_is_nothing(run: Path) -> None:
    """Not even where its number and a known one's are stored alike."""
    assert records_about(run, 10**6) == []
    assert records_about(run, 2**32 + 1) == []


def test_without_a_log_there_is_an_error(tmp_path: Path) -> None:
    """A mistyped folder is no run without evidence."""
    with pytest.raises(LogMissingError):
        records_about(tmp_path, 1)


# ---- derived, and never believed -----------------------------------------------------------


def test_a_writer_leaves_an_index_beside_every_seal(run: Path) -> None:
    """It has read the segment anyway."""
    assert all(path.is_file() for path in indexes(run))
    assert not index_path(segment_path(run, segments_of(run)[-1])).exists()


def test_a_reader_makes_the_same_index_as_a_writer(run: Path) -> None:
    """There is one truth to derive it from."""
    before = [path.read_bytes() for path in indexes(run)]
    for path in indexes(run):
        path.unlink()

    records_about(run, 7)

    assert before == [path.read_bytes() for path in indexes(run)]


@pytest.mark.parametrize("place", [3, 20, 50, 90, -1])
def test_a_damaged_index_is_made_again(run: Path, place: int) -> None:
    """As is one of another version, vocabulary or segment: each is a byte in its head."""
    path = indexes(run)[2]
    before = path.read_bytes()
    changed = bytearray(before)
    changed[place] ^= 1
    path.write_bytes(changed)

    assert scanned(run, 7) == records_about(run, 7)
    assert before == path.read_bytes()


@pytest.mark.parametrize("length", [0, 10, 76, 200])
def test_half_an_index_is_made_again(run: Path, length: int) -> None:
    """A full disk or a crash leaves one."""
    path = indexes(run)[2]
    before = path.read_bytes()
    path.write_bytes(before[:length])

    assert scanned(run, 7) == records_about(run, 7)
    assert before == path.read_bytes()


@pytest.mark.parametrize("column", [0, 1, 2])
def test_an_index_that_points_to_the_wrong_rows_is_made_again(run: Path, column: int) -> None:
    """Its checksum says that nobody has damaged it, not that it is right."""
    path, found, digest = of(run, 100)
    before = index_path(path).read_bytes()
    columns = found.columns.copy()
    columns[column] = np.roll(columns[column], 1)
    store(path, Index(100, columns), digest)
    candidate = next(
        r.event.candidate
        for r in read(run)
        if r.seq > 110 and isinstance(r.event, CandidateProposed)
    )

    assert scanned(run, candidate) == records_about(run, candidate)
    assert before == index_path(path).read_bytes()


def test_an_index_that_cannot_be_stored_is_none(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence can be had of a run on a full or a read-only disk."""
    path = indexes(run)[2]
    path.write_bytes(b"")

    def fail(self: Path, data: bytes) -> int:
        raise OSError

    monkeypatch.setattr(Path, "write_bytes", fail)

    assert scanned(run, 7) == records_about(run, 7)
    assert not path.exists()


def test_a_segment_of_another_vocabulary_is_validated(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of old records to today's fields goes through the upcasters."""
    expected = scanned(run, 7)
    monkeypatch.setattr(codec, "SCHEMA", bytes(32))
    monkeypatch.delattr(codec, "trusted")

    assert expected == records_about(run, 7)


def test_evidence_from_a_damaged_segment_is_refused(run: Path) -> None:
    """The index may be right and the rows are not."""
    path, found, _ = of(run, 100)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    records = (seq for seq in range(100, 200) if found.link(seq).candidate)

    with pytest.raises(LogCorruptError, match="not what its seal says"):
        records_about(run, found.link(next(records)).candidate)


def test_damage_to_the_open_segment_is_refused(run: Path) -> None:
    """A scan would refuse it too."""
    path = segment_path(run, segments_of(run)[-1])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    with pytest.raises(LogCorruptError):
        records_about(run, 7)


def test_a_forged_batch_is_refused(run: Path) -> None:
    """Its checksums and its chain are right; what it holds are no records."""
    at = read_end(run)[0].at
    with segment_path(run, at.segment).open("ab") as file:
        file.write(frames.pack(at, b"\x91\x01", 1, at.epoch)[0])

    with pytest.raises(LogCorruptError, match="not the records that its segment's header promises"):
        records_about(run, 7)


# ---- commands ------------------------------------------------------------------------------


def test_verify_names_an_index_that_is_not_of_its_segment(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It might hide evidence; but the record is whole, and the file may go."""
    path, found, digest = of(run, 100)
    columns = found.columns.copy()
    columns[1, 7] += 1
    store(path, Index(100, columns), digest)

    assert survey(run).odd_indexes == [index_path(path)]
    log.main(["verify", str(run)])
    assert f"{index_path(path)} is not that of its segment; delete it" in capsys.readouterr().out


def test_verify_has_nothing_to_say_of_indexes_that_mislead_nobody(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are as they were made, one that is not there, and any of another version."""
    indexes(run)[3].unlink()

    assert survey(run).odd_indexes == []
    monkeypatch.setattr(codec, "SCHEMA", bytes(32))
    assert survey(run).odd_indexes == []


def test_cat_shows_the_records_about_a_candidate(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an auditor asks for them: by the number that the tree shows."""
    assert log.main(["cat", str(run), "--candidate", "c7"]) == 0

    shown = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert shown == [record.seq for record in scanned(run, 7)]


@pytest.mark.parametrize("name", ["c0", "seven", "c1000000"])
def test_cat_refuses_a_candidate_that_there_is_not(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing about it and nothing wrong with it look alike."""
    assert log.main(["cat", str(run), "--candidate", name]) == 2
    assert f"no candidate '{name}'" in capsys.readouterr().err


def test_a_live_run_can_be_asked(run: Path, records: list[Record]) -> None:
    """The writer's lock is not in the way."""
    with EventLog.open(run, clock, QUICK):
        assert records_about(run, 7)
