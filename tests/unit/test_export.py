"""The export of a run: sources that are the record's, and folders that are the user's."""

import errno
import hashlib
import itertools
import os
from pathlib import Path

import pytest

from events.blobs import Blobs
from scripts import export, report
from scripts.export import main
from scripts.reporting.handover import SUMS, SUMS_TITLE, exported
from scripts.reporting.history import Run, load
from tests.support.runs import begin, campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "finished"
    begin(path, campaign())
    return path


def test_each_source_is_the_best_version_bit_by_bit(folder: Path, tmp_path: Path) -> None:
    """Its SHA-256 is its name in the record, so anyone can check."""
    out = tmp_path / "best"

    assert main([str(folder), "--out", str(out)]) == 0

    for kernel in ("alpha", "beta"):
        best = load(folder).state.tree.incumbent(kernel)
        data = (out / f"{kernel}.txt").read_bytes()
        assert hashlib.sha256(data).hexdigest() == best.source
    assert (out / "README.md").is_file()


def test_the_evidence_names_its_records(folder: Path) -> None:
    """Every accept is told with the numbers of its pairs and its decision."""
    run = load(folder)

    page = exported(run, Blobs(folder))["README.md"].decode()

    assert run.head in page
    for branch in run.state.tree.branches.values():
        for candidate in branch.accepts:
            node = run.state.tree.nodes[candidate]
            assert f"| c{candidate} | c{node.opponent} |" in page
            assert f"| #{node.decided} |" in page


def test_an_earlier_export_is_replaced(folder: Path, tmp_path: Path) -> None:
    """Exporting twice is no mistake, and leaves nothing of the first."""
    out = tmp_path / "best"
    assert main([str(folder), "--out", str(out)]) == 0
    (out / "alpha.txt").write_text("changed")

    assert main([str(folder), "--out", str(out)]) == 0

    assert sorted(p.name for p in out.iterdir()) == [
        "README.md",
        "SHA256SUMS",
        "alpha.txt",
        "beta.txt",
    ]
    assert (out / "alpha.txt").read_text() != "changed"


def test_a_folder_of_the_user_is_left_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written beside, or over, what no export wrote."""
    (tmp_path / "alpha.txt").write_text("mine")

    assert main([str(folder), "--out", str(tmp_path)]) == 2

    assert "--out" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["alpha.txt"]
    assert (tmp_path / "alpha.txt").read_text() == "mine"


def test_a_list_of_sums_cannot_reach_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    """Only plain names are replaced, whatever the list says."""
    out = tmp_path / "best"
    assert main([str(folder), "--out", str(out)]) == 0
    precious = tmp_path / "precious"
    precious.write_text("mine")
    with (out / "SHA256SUMS").open("a") as sums:
        sums.write(f"{'0' * 64}  ../precious\n")

    assert main([str(folder), "--out", str(out)]) == 0

    assert precious.read_text() == "mine"


def test_what_is_no_list_of_sums_is_refused_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a pipe nor a file as large as the memory is read to its end."""
    endless = tmp_path / "endless" / SUMS
    pipe = tmp_path / "pipe" / SUMS
    for path in (endless, pipe):
        path.parent.mkdir()
    endless.write_bytes(SUMS_TITLE.encode())
    os.truncate(endless, 1 << 40)
    os.mkfifo(pipe)

    for path, why in ((endless, "is larger than 1 MB"), (pipe, "is no file")):
        assert main([str(folder), "--out", str(path.parent)]) == 2
        assert capsys.readouterr().err == f"kernelwright: {path} {why}\n"
        assert list(path.parent.iterdir()) == [path]


def test_a_kernel_without_accepts_is_exported_as_the_baseline(tmp_path: Path) -> None:
    """It is said, so that nobody takes it for a result."""
    begin(tmp_path, campaign(max_candidates=1))
    run = load(tmp_path)

    made = exported(run, Blobs(tmp_path))

    assert made["beta.txt"] == Blobs(tmp_path).get(run.state.begun.sources["beta"].baseline)
    assert "no candidate was accepted" in made["README.md"].decode()


def test_a_run_that_has_just_begun_can_be_exported(folder: Path) -> None:
    """Before screening, the target's own baseline is all there is."""
    run = load(folder)
    young = Run(run.records[:1], type(run.state)(), run.head)
    young.state.apply(run.records[0])

    page = exported(young, Blobs(folder))["README.md"].decode()

    assert "has not passed screening" in page
    assert "not yet confirmed" in page


def test_a_run_that_is_not_there_is_a_line_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's mistake is no traceback, and makes no folder."""
    assert main([str(tmp_path / "nowhere")]) == 2

    assert "no such log" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_a_full_disk_cut_off_can_be_repeated(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it left must not be taken for files of the user's, nor for whole ones."""
    fsync, written = os.fsync, itertools.count(1)

    def full(file: int) -> None:
        if next(written) > 2:  # the list and the first source
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main([str(folder), "--out", str(tmp_path / "best")]) == 1
        assert report.main([str(folder), "--out", str(tmp_path / "report.txt")]) == 1

    assert not (tmp_path / "report.txt").exists()
    assert len(list((tmp_path / "best").glob("*"))) == 2
    assert main([str(folder), "--out", str(tmp_path / "best")]) == 0
    assert len(list((tmp_path / "best").glob("*.txt"))) == 2


def test_a_report_replaces_one_of_ours_alone(folder: Path, tmp_path: Path) -> None:
    """A slip of the hand must not cost a file."""
    theirs, ours = tmp_path / "theirs.html", tmp_path / "ours.html"
    theirs.write_text("<html></html>")

    assert report.main([str(folder), "--out", str(theirs)]) == 2
    assert report.main([str(folder), "--out", str(ours)]) == 0
    assert report.main([str(folder), "--out", str(ours)]) == 0

    assert theirs.read_text() == "<html></html>"


def test_the_devices_programs_are_exported_beside_the_sources(folder: Path) -> None:
    """Where the target has any, and somebody asks."""
    run = load(folder)

    made = exported(run, Blobs(folder), lambda kernel, source: kernel.encode() + source[:1])

    for kernel in ("alpha", "beta"):
        program = made[f"{kernel}.txt.bin"]
        assert program == kernel.encode() + made[f"{kernel}.txt"][:1]
        assert hashlib.sha256(program).hexdigest() in made["SHA256SUMS"].decode()


def test_a_target_without_a_further_compilation_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's slip is one line."""
    monkeypatch.setattr(export, "load_target", lambda name, preset: object())

    assert main([str(folder), "--compile"]) == 2

    assert "compiles wholly in every build" in capsys.readouterr().err
