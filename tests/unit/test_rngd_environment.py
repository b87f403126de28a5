"""Where the vendor's packages are looked for, and what is said where they are not."""

import os
import platform
from pathlib import Path

import pytest

from targets.protocol import BuildFailed, TargetError
from targets.rngd import environment as places
from targets.rngd.artifact import Artifact, pack, unpack
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import VARIABLE, environment, numbers, without
from targets.rngd.normal import normalize
from targets.rngd.target import PRESETS, rngd_target


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that could run the toolchain and does not have it."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(places, "environments", lambda: ())


@pytest.mark.usefixtures("bare")
def test_without_the_packages_the_target_says_how_to_get_them() -> None:
    """One line, with the command; what needs no toolchain works."""
    target = rngd_target("full")

    with pytest.raises(TargetError, match=r"pip install 'kernelwright\[rngd\]'"):
        target.fingerprint()
    with pytest.raises(TargetError, match=VARIABLE):
        target.build(target.kernels()[0], "")
    assert all(target.card(kernel).weight_bytes > 0 for kernel in target.kernels())


def test_other_machines_are_told_that_they_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor ships programs of one architecture."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")

    with pytest.raises(TargetError, match=r"x86-64 Linux only; this is \w+ on aarch64"):
        environment()


def test_an_unknown_preset_lists_those_there_are() -> None:
    """Whatever is installed."""
    with pytest.raises(TargetError, match=PRESETS[1]):
        rngd_target("small")


def test_a_folder_that_is_no_environment_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user's slip in the variable is one clear line."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    with pytest.raises(TargetError, match=str(tmp_path)):
        places.environments()


@pytest.mark.parametrize("python", ["#!/bin/sh\nexit 3\n", "no program"])
def test_an_interpreter_that_does_not_run_is_named_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, python: str
) -> None:
    """And in words of people, without the program that it was asked by."""
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text(python)
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    with pytest.raises(TargetError) as refused:
        places.environments()

    assert str(refused.value).count(str(program)) == 1
    assert "Path(" not in str(refused.value)
    assert len(str(refused.value)) < len(str(program)) + 100


def test_an_environment_without_the_packages_is_none_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as the one that this runs in."""
    monkeypatch.delenv(VARIABLE, raising=False)

    assert places.environments() == ()


def test_versions_are_compared_by_their_numbers() -> None:
    """2026.10 is newer than 2026.9."""
    assert sorted(["2026.10.0", "2026.9.1", "2026.9.0rc1"], key=numbers) == [
        "2026.9.0rc1",
        "2026.9.1",
        "2026.10.0",
    ]


def test_what_is_hidden_is_left_out_and_everything_else_may_be_read(tmp_path: Path) -> None:
    """Folders on the way to it can be listed and no more."""
    for name in ("site/furiosa/tcl", "site/furiosa/kernels", "site/other"):
        (tmp_path / name).mkdir(parents=True)
    secret = tmp_path / "site" / "furiosa" / "kernels"
    os.symlink(secret, tmp_path / "site" / "alias")

    reads = without([str(tmp_path / "site")], [secret])

    below = {str(Path(root).relative_to(tmp_path)) for root in reads.roots}
    assert below == {"site/furiosa/tcl", "site/other"}
    assert {str(Path(name).relative_to(tmp_path)) for name in reads.listed} == {
        "site",
        "site/furiosa",
    }


def test_an_artifact_is_what_was_packed() -> None:
    """To the byte, whatever the order of its versions."""
    one = Artifact("a", {"x": "1", "y": "2"}, 5, "def a()\n")
    other = Artifact("a", {"y": "2", "x": "1"}, 5, "def a()\n")

    assert pack(one) == pack(other)
    assert unpack("a", pack(one)) == one
    with pytest.raises(ValueError, match="not of b"):
        unpack("b", pack(one))
    with pytest.raises(ValueError, match="no artifact"):
        unpack("a", b"ELF")


def test_comments_and_spacing_make_no_new_candidate() -> None:
    """Indentation and text do."""
    one = "def f(x):\n    return x  # the same\n"

    assert normalize(one) == normalize("def f( x ):\n\n  return x\n")
    assert normalize(one) != normalize("def f(x):\n    return y\n")
    assert normalize("f(") == "f("


def test_a_refusal_shows_the_line_and_is_short() -> None:
    """A source chooses its names and the length of its lines."""
    diagnostic = Diagnostic("trace", "TypeError", "bad 'thing'\nmore", line=2, hint="do so")

    refusal = diagnostic.refusal("a\n  b = 1\n")
    long = diagnostic.refusal(f"a\n{'b' * 1000}\n")

    assert refusal == BuildFailed(
        "trace: line 2: TypeError: bad 'thing'\nmore\ndo so", "trace: TypeError: bad _", "b = 1"
    )
    assert long.snippet == ""
