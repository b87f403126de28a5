"""``kernelwright log prune``: what is given up is known to have been given up, and why."""

import itertools
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from events import pack_writer
from events.blob_names import named_by
from events.blobs import Blobs
from events.disk import Disk
from events.errors import BlobMissingError, LogWriteError
from events.log import EventLog, batches, read
from events.projections.state import replay
from events.pruned import KnownBlobs, listed, pruned, unlisted
from events.segments import segment_path
from events.vocabulary import BlobsPruned, EditsReapplied, Record, RunResumed
from scripts import audit, log
from scripts.replay import fold
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign, go_on, ticking


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the fake target, in many packs; tests do not change it."""
    folder = tmp_path_factory.mktemp("prune") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pack_writer, "MAX_PACK_BYTES", 1 << 14)
        begin(folder, campaign())
    assert len(list((folder / "blobs").iterdir())) > 4
    return folder


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it to be changed."""
    return Path(shutil.copytree(recorded, tmp_path / "run"))


def cut(run: Path, n: int) -> Path:
    """The same run as if it had been killed after ``n`` records."""
    ends = [frame.end for frame, _ in batches(run)]
    end = next(end for end in ends if end.seq >= n)
    os.truncate(segment_path(run, 0), end.offset)
    (run / "acknowledged").unlink()
    return run


def of_kind(records: Iterable[Record], kind: str) -> set[str]:
    """The blobs of one kind that are of no other."""
    named = [named for record in records for named in named_by(record.event)]
    return {n.sha for n in named if n.kind == kind} - {n.sha for n in named if n.kind != kind}


def n_bytes(run: Path) -> int:
    """What the packs take."""
    return sum(path.stat().st_size for path in (run / "blobs").iterdir())


def verified(run: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """What `log verify` says."""
    capsys.readouterr()
    log.main(["verify", str(run), "--json"])
    said: dict[str, object] = json.loads(capsys.readouterr().out)
    return said


def test_pruned_blobs_are_gone_and_the_record_says_so(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list in the log is what was removed, and nothing else was."""
    before = list(read(run))
    gone = of_kind(before, "prompt") | of_kind(before, "reply")
    size, before_bytes = sum(map(Blobs(run).stored_bytes, gone)), n_bytes(run)

    assert log.main(["prune", str(run), "--blobs", "prompt", "reply"]) == 0

    *same, last = read(run)
    event = last.event
    assert same == before
    assert isinstance(event, BlobsPruned)
    assert (event.blob_kinds, event.n_blobs, event.n_bytes) == (
        ("prompt", "reply"), len(gone), size,
    )  # fmt: skip
    assert set(unlisted(Blobs(run).get(event.list))) == gone
    left = set(Blobs(run).names())
    assert not gone & left
    assert n_bytes(run) == before_bytes - size + Blobs(run).stored_bytes(event.list)
    assert {n.sha for r in same for n in named_by(r.event)} - gone <= left
    said = verified(run, capsys)
    assert (said["whole"], said["pruned"], said["still_to_prune"]) == (True, len(gone), [])


def test_a_prune_without_anything_to_prune_leaves_the_log_alone(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So a job that prunes every night writes no record for nothing."""
    assert log.main(["prune", str(run), "--blobs", "prompt"]) == 0
    before = list(read(run))
    assert log.main(["prune", str(run), "--blobs", "prompt"]) == 0
    assert list(read(run)) == before
    assert "0 blobs removed" in capsys.readouterr().out


def test_audit_and_replay_go_on_without_what_was_pruned(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evidence that was given up is no sign of tampering, and is not called checked either."""
    wall_s = replay(read(run)).spending.wall_s
    n = len(list(read(run)))
    assert log.main(["prune", str(run), "--blobs", "prompt", "samples"]) == 0
    capsys.readouterr()

    assert audit.main([str(run), "--json"]) == audit.NOT_DERIVABLE
    said = json.loads(capsys.readouterr().out)
    assert {f["sort"] for f in said["findings"]} == {"pruned"}
    assert {f["kind"] for f in said["findings"]} >= {"role_replied", "pairs_measured"}
    assert {f["problem"] for f in said["findings"]} == {
        f"evidence was pruned by record {n}, not re-derivable"
    }
    assert audit.main([str(run)]) == audit.NOT_DERIVABLE
    captured = capsys.readouterr()
    assert f"evidence was pruned by record {n}, not re-derivable" in captured.err
    assert "every record is supported but for" in captured.out
    assert fold(read(run)).state.spending.wall_s == wall_s


def test_a_blob_that_is_gone_without_a_record_is_still_a_finding(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A prune excuses what it lists and no more."""
    assert log.main(["prune", str(run), "--blobs", "prompt"]) == 0
    sha = sorted(of_kind(read(run), "samples"))[0]
    Blobs(run).remove_all([sha])

    assert verified(run, capsys)["whole"] is False
    assert audit.main([str(run)]) == 1
    assert f"blob {sha} is missing" in capsys.readouterr().err


class DyingDisk(Disk):
    """Syncs no folder from some moment on."""

    dead = False

    def sync_folder(self, folder: Path) -> None:
        """Fail if dead."""
        if self.dead:
            raise OSError("the plug was pulled")
        super().sync_folder(folder)


def killed(run: Path, n: int, moment: str) -> bool:
    """Prune the prompts; whether the process was killed while writing the n-th pack anew."""
    writing = itertools.count()
    whole = Disk.replace

    def replace(disk: Disk, path: Path, data: bytes) -> None:
        is_last = next(writing) == n
        if not is_last or moment == "after":
            whole(disk, path, data)
        elif moment == "half":
            path.with_name(f"{path.name}.tmp").write_bytes(data[: len(data) // 2])
        if is_last:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Disk, "replace", replace)
        try:
            log.main(["prune", str(run), "--blobs", "prompt"])
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("moment", ["before", "half", "after"])
def test_a_prune_that_is_killed_at_any_step_is_finished_by_the_next(
    run: Path, moment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The event is durable before the first blob goes, and no other blob goes at any time."""
    gone = of_kind(read(run), "prompt")
    kept = {n.sha: Blobs(run).get(n.sha) for r in read(run) for n in named_by(r.event)}
    kept = {sha: data for sha, data in kept.items() if sha not in gone}
    last = len(list(read(run)))
    n = 0
    while killed(run, n, moment):
        n += 1
        blobs = Blobs(run)
        assert {sha: blobs.get(sha) for sha in kept} == kept
        *_, event = (r.event for r in read(run))
        assert isinstance(event, BlobsPruned)
        said = verified(run, capsys)
        assert (said["whole"], said["records"]) == (True, last + 1)
        assert set(said["still_to_prune"]) == gone & set(blobs.names())  # type: ignore[call-overload]

    assert n >= 3
    assert verified(run, capsys)["still_to_prune"] == []
    assert not gone & set(Blobs(run).names())
    assert {path.suffix for path in (run / "blobs").iterdir()} == {".pack"}


def test_a_disk_that_fails_while_removing_stops_with_an_error(run: Path) -> None:
    """What a failed sync leaves is finished by the next prune as well."""
    disk = DyingDisk()
    blobs = Blobs(run, disk)
    disk.dead = True
    with pytest.raises(LogWriteError, match="could not be changed"):
        blobs.remove_all(sorted(of_kind(read(run), "prompt"))[:2])


def test_a_second_writer_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that goes on is not pruned under its feet."""
    with EventLog.open(run, ticking()):
        assert log.main(["prune", str(run), "--blobs", "prompt"]) == 2
    assert "is being run by" in capsys.readouterr().err


def test_an_unfinished_run_keeps_its_sources_and_artifacts(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It builds on them when it goes on; the other kinds may go."""
    cut(run, 200)
    for kind in ("source", "artifact"):
        assert log.main(["prune", str(run), "--blobs", "prompt", kind]) == 2
        assert "is not finished and needs" in capsys.readouterr().err
    assert not any(isinstance(r.event, BlobsPruned) for r in read(run))
    assert log.main(["prune", str(run), "--blobs", "prompt"]) == 0


def test_a_run_goes_on_after_a_prune_and_its_new_blobs_are_there(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A blob that is named again after it was pruned has been stored again."""
    cut(run, 200)
    assert log.main(["prune", str(run), "--blobs", "prompt", "template"]) == 0
    templates = of_kind(read(run), "template")
    assert templates <= set(pruned(read(run), Blobs(run)))

    assert go_on(run).finished is not None

    assert not templates <= set(pruned(read(run), Blobs(run)))
    assert verified(run, capsys)["whole"] is True
    assert audit.main([str(run)]) == audit.NOT_DERIVABLE
    assert log.main(["prune", str(run), "--blobs", "torn_tail"]) == 0
    assert verified(run, capsys)["whole"] is True


def test_pending_work_that_needs_a_pruned_blob_is_named_with_the_record(run: Path) -> None:
    """Not as if the run's folder were damaged."""
    records = list(read(run))
    rebased = next(r for r in records if isinstance(r.event, EditsReapplied))
    cut(run, rebased.seq)
    assert log.main(["prune", str(run), "--blobs", "reply"]) == 0
    records = list(read(run))
    pruned_by = next(r.seq for r in records if isinstance(r.event, BlobsPruned))

    with EventLog.open(run, ticking()) as writer:
        blobs = KnownBlobs.of(run, records)
        actors = crew(FakeTarget(), run / "lease", {}, lambda: 0.0)
        boss = Director(writer, blobs, LocalMailbox(actors))
        with pytest.raises(BlobMissingError) as missing:
            boss.resume(records, RunResumed(versions={}, toolchain={"compiler": "fake 1.0"}))
    assert missing.value.pruned_by == pruned_by
    assert f"was pruned by record {pruned_by}; " in str(missing.value)


def test_a_list_names_blobs_and_nothing_else() -> None:
    """A run may come from elsewhere, and what its list holds is removed."""
    sha = "ab" * 32
    assert unlisted(listed([sha])) == (sha,)
    assert unlisted(f"/etc/passwd\n../../x\n{sha}\n{sha}x\n".encode() + b"\xff\n") == (sha,)
