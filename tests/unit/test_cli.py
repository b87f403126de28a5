"""The command line: quick to answer, and no traceback for what a user can do wrong."""

import errno
import io
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from events.errors import LogBusyError, LogCorruptError, LogMissingError, LogWriteError
from events.log import read
from events.projections.state import State
from events.projections.state import replay as fold
from events.projections.tree import Branch, DesignTree, Node
from events.vocabulary import Record
from scripts import doctor, progress, replay, runs, targets, tree
from scripts.campaign_file import CampaignError
from scripts.main import COMMANDS, main
from targets.protocol import TargetError
from tests.support.runs import begin, campaign

HEAVY = ("ray", "litellm", "numpy", "pydantic", "scipy", "rich", "jinja2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the fake target."""
    folder = tmp_path_factory.mktemp("cli") / "fake-1"
    begin(folder, campaign())
    return folder


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


# ---- the command itself --------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    """A command that takes a second to say what it does is not asked twice."""
    done = python(
        "import sys; from scripts.main import main; status = main(['--help']);"
        f"print([m for m in {HEAVY!r} if m in sys.modules]); sys.exit(status)"
    )

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "[]"
    for name, what in COMMANDS.items():
        assert f"{name:<9} {what}" in done.stdout


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    """A report of a defect begins with it."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kernelwright 0.")


def test_an_unknown_subcommand_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit status 2 is a mistake in the call."""
    assert main(["raply"]) == 2
    assert capsys.readouterr().err == (
        "kernelwright: unknown command 'raply'; did you mean 'replay'?\n"
    )


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is a wish, not a defect."""

    def interrupted(argv: Sequence[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(targets, "main", interrupted)

    assert main(["targets"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_leaves_is_no_traceback(run: Path) -> None:
    """`kernelwright tree RUN | head -1` closes the pipe early."""
    code = (
        "import sys, scripts.tree as t; from scripts.main import main;"
        "t.line = lambda *_: 'x' * 9999;"
        f"sys.exit(main(['tree', {str(run)!r}]))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""

    assert process.returncode == 141


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CampaignError(Path("x.toml"), "wrong"), 2),
        (TargetError("no compiler"), 2),
        (runs.UsageError("no"), 2),
        (LogBusyError(Path("r/LOCK"), "process 1"), 2),
        (LogMissingError(Path("r")), 2),
        (LogWriteError(Path("r"), "disk full"), 1),
        (LogCorruptError(Path("r/log/0.seg"), 5, 1, "checksum"), 1),
        (PermissionError(errno.EACCES, "Permission denied", "r/log"), 2),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (OSError(errno.ENOSPC, "No space left on device", "r/report.html"), 1),
    ],
)
def test_what_a_user_or_a_disk_does_wrong_is_one_line(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a defect has a traceback."""

    def fails(argv: Sequence[str] | None) -> int:
        raise error

    assert runs.without_traceback(fails)([]) == status
    assert capsys.readouterr().err.count("\n") == 1


def test_closed_streams_stop_nothing() -> None:
    """A job system may start a run without any; no file of the run may get their numbers."""
    inner = (
        "import os, sys; from scripts.main import main; status = main(['targets']); print(status); "
        "sys.exit(7 if status == 0 and os.open(os.devnull, 0) > 2 else 8)"
    )
    words = [sys.executable, "-c", inner]
    code = f"import os; [os.close(i) for i in range(3)]; os.execv({words[0]!r}, {words!r})"

    assert python(code).returncode == 7


def test_a_defect_keeps_its_traceback() -> None:
    """It is for us to read."""

    def fails(argv: Sequence[str] | None) -> int:
        raise LookupError

    with pytest.raises(LookupError):
        runs.without_traceback(fails)([])


# ---- run folders ---------------------------------------------------------------------------


def test_new_folders_count_up(tmp_path: Path) -> None:
    """A number is never used twice, whatever else is in the folder."""
    names = ["a-1", "a-7", "ab-9", "a-x"]
    for name in names:
        (tmp_path / name).mkdir()

    assert [runs.new_folder("a", tmp_path).name for _ in range(2)] == ["a-8", "a-9"]


@pytest.mark.parametrize("command", [replay.main, tree.main])
def test_a_folder_without_a_run_is_one_line(
    command: Callable[[Sequence[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name was misspelt."""
    assert command([str(tmp_path / "nowhere")]) == 2
    assert "no such log" in capsys.readouterr().err


# ---- progress ------------------------------------------------------------------------------


def watched(run: Path, view: progress.View) -> State:
    """Show a whole run to a view."""
    state = State()
    for record in read(run):
        state.apply(record)
        view.watch(record, state)
    view.tick()
    view.close()
    return state


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ('provider = "command"\ncommand = ["no-such-agent"]', "no program: 'no-such-agent'"),
        ('provider = "command"\ncommand = ["a\\u0000b"]', "a NUL character names no file"),
        (
            'provider = "litellm"\nmodel = "openai/m"\napi_key_env = "NO_SUCH_KEY"',
            "environment variable 'NO_SUCH_KEY'",
        ),
    ],
)
def test_a_model_that_cannot_answer_is_named_before_the_run_starts(
    model: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every turn would fail, and the run would end hours later with nothing found."""
    file = tmp_path / "x.toml"
    text = 'name = "x"\ntarget = "cpu"\nkernels = ["decoder_feedforward"]\n[models.default]\n'
    file.write_text(text + model)

    assert main(["run", str(file), "--local", "--out", str(tmp_path / "r")]) == runs.USAGE
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_display_that_fails_does_not_end_the_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes dark and says so once: the record is what matters."""

    class Broken(progress.Silent):
        def watch(self, record: Record, state: State) -> None:
            raise BrokenPipeError("the reader has left")

    watched(run, progress.Guarded(Broken()))

    assert capsys.readouterr().err.count("no more progress is shown") == 1


def test_plain_progress_tells_news_and_beats_in_silence(run: Path) -> None:
    """A log file of days stays readable; a silent one would look dead."""
    out, seconds = io.StringIO(), itertools.count(step=0.3)
    state = watched(run, progress.Lines(out, lambda: next(seconds)))
    lines = out.getvalue().splitlines()

    accepts = sum(len(branch.accepts) for branch in state.tree.branches.values())
    assert sum("accepted c" in line for line in lines) == accepts > 0
    assert any("candidates, device busy" in line for line in lines)
    assert all(line.startswith("[00:") for line in lines)


def test_the_panel_fits_a_terminal_and_is_not_redrawn_for_every_record(run: Path) -> None:
    """A redraw per record would cost more than the record."""
    out, seconds = io.StringIO(), itertools.count(step=0.01)
    console = Console(file=out, width=80, force_terminal=True)
    watched(run, progress.Panel(console, lambda: next(seconds)))
    n_records = sum(1 for _ in read(run))

    assert "kernel" in out.getvalue()
    assert 0 < out.getvalue().count("measured") < n_records / 4


def test_watching_does_not_change_the_state(run: Path) -> None:
    """The digest of a watched run is that of its log."""
    seconds = itertools.count()
    seen = watched(run, progress.Lines(io.StringIO(), lambda: next(seconds)))

    assert seen.digest() == fold(read(run)).digest()


# ---- subcommands ---------------------------------------------------------------------------


def test_replay_shows_the_state_and_its_digest(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two replays of one log agree to the bit."""
    assert replay.main([str(run), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert replay.main([str(run)]) == 0
    assert whole["digest"] in capsys.readouterr().out
    assert whole["status"].startswith("finished")
    assert set(whole["kernels"]) == {"alpha", "beta"}


def test_replay_goes_back_to_any_record(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The state after a record is that of a log that ends there."""
    assert replay.main([str(run), "--until", "50", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)

    assert about["records"] == 51
    assert about["status"] == "unfinished"


def test_tree_shows_every_candidate_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parents come before children, and the best version is marked."""
    assert tree.main([str(run), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    numbers = [node["candidate"] for nodes in table.values() for node in nodes]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))

    assert tree.main([str(run), "--kernel", "alpha"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "alpha"
    assert len(lines) == 1 + len(table["alpha"])
    assert sum("BEST" in line for line in lines) == 1


def test_tree_shows_the_best_version_however_long_its_chain_is() -> None:
    """It is what a reader looks for, and it is the deepest of all accepts."""
    known = DesignTree(branches={"k": Branch(nodes=list(range(1, 60)), incumbent=59)})
    for n in range(1, 60):
        known.nodes[n] = Node(n, "k", "step", n - 1 or None, "", "", "", "", "", n)
    out = io.StringIO()
    tree.show(known, "k", Console(file=out, width=60, force_terminal=True))

    assert "c59 on c58" in out.getvalue()
    assert out.getvalue().count("\n") == 60


def test_tree_names_the_nearest_kernel(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown kernel is a mistake in the call."""
    assert tree.main([str(run), "--kernel", "alpa"]) == 2
    assert "did you mean 'alpha'?" in capsys.readouterr().err


def test_targets_lists_kernels_and_presets(capsys: pytest.CaptureFixture[str]) -> None:
    """It is what a campaign file may name."""
    assert targets.main(["--json"]) == 0
    cpu = json.loads(capsys.readouterr().out)["cpu"]

    assert set(cpu["presets"]) == {"full", "small"}
    assert all(n > 0 for kernels in cpu["presets"].values() for n in kernels.values())


def test_doctor_fails_when_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its status tells a script what its lines tell a person; notes do not count."""
    note = doctor.Line("cores", False, "one", needed=False)
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note,))
    assert doctor.main([]) == 0

    monkeypatch.setattr(doctor, "CHECKS", (lambda: doctor.Line("compiler", False, "install gcc"),))
    assert doctor.main([]) == 1
    assert "missing  compiler   install gcc" in capsys.readouterr().out


def sim_campaign(folder: Path, more: str) -> Path:
    """A campaign file of the simulated accelerator."""
    file = folder / "x.toml"
    kernels = 'preset = "1.0"\nkernels = ["sliding_attention_output"]\n'
    file.write_text(f'name = "x"\ntarget = "sim"\n{kernels}{more}')
    return file


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ('[knowledge]\nfacts = ["gone.json"]\n', "gone.json cannot be read (No such file"),
        ('[knowledge]\ndocuments = ["gone.md"]\n', "gone.md cannot be read (No such file"),
        (
            '[models.default]\nprovider = "manual"\nfolder = "FOLDER/x.toml/in"\n',
            "'folder' is no folder, and none can be made",
        ),
        (
            '[models.default]\nprovider = "litellm"\nmodel = "x/unheard-of"\n',
            "no price is known for 'models.default' (x/unheard-of)",
        ),
        ("", None),
    ],
)
def test_doctor_finds_what_run_would_refuse(
    tmp_path: Path,
    more: str,
    missing: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the same words."""
    monkeypatch.setattr(doctor, "CHECKS", ())
    file = sim_campaign(tmp_path, more.replace("FOLDER", str(tmp_path)))

    assert doctor.main([str(file)]) == (1 if missing else 0)

    said = capsys.readouterr().out
    assert missing is None or missing in said
    if missing:
        assert main(["run", str(file), "--local", "--out", str(tmp_path / "r")]) == 2
        assert missing in capsys.readouterr().err
        assert not (tmp_path / "r").exists()


def test_doctor_tells_which_models_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a key only the name, and whether it is set."""
    monkeypatch.setattr(doctor, "CHECKS", ())
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    file = sim_campaign(
        tmp_path,
        '[models.a]\nprovider = "litellm"\nmodel = "openai/m"\napi_key_env = "MY_KEY"\n'
        '[models.b]\nprovider = "recorded"\nrun = "nowhere"\n'
        '[roles]\narchitect = ["a"]\nanalyst = ["a", "b"]\n',
    )

    assert doctor.main([str(file)]) == 1
    said = capsys.readouterr().out
    assert "ok       model      a: litellm, key in MY_KEY; answers for architect, analyst" in said
    assert "missing  model      b: 'run' is no run folder: 'nowhere'" in said
    assert "ok       model      default: catalogue; answers for implementer" in said
    assert "very-secret" not in said
    monkeypatch.delenv("MY_KEY")
    doctor.main([str(file)])
    assert "variable 'MY_KEY' ('api_key_env') is not set" in capsys.readouterr().out
