"""Files that a user names: nothing of them is lost, and none hangs a command."""

import errno
import os
from pathlib import Path

import pytest

from scripts.campaign_file import CampaignError, load
from scripts.files import FileError, open_appending, read_file, write


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no half of what was to come."""
    path = tmp_path / "x.toml"
    path.write_bytes(b"mine")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"x\.toml"):
        write(path, b"theirs")

    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_written_anew_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"mine")
    path.chmod(0o640)

    write(path, b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_gives_way_to_no_file(tmp_path: Path) -> None:
    """Nor would a device."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="pipe"):
        write(tmp_path / "pipe", b"new")

    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "is no file"),
        ("endless", "is no file"),
        ("folder", "is no file"),
        ("huge", "is larger than 1 MB"),
        ("absent", r"cannot be read \(No such file"),
        ("a\0b", "cannot be read"),
    ],
)
def test_what_is_no_file_to_read_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    """It would hang, or fill the memory."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(FileError, match=why):
        read_file(tmp_path / name, 1 << 20)
    with pytest.raises(CampaignError):
        load(tmp_path / name)


def test_what_is_no_file_to_write_on_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe that nobody reads would hang."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "endless").symlink_to("/dev/zero")

    for name in ("pipe", "folder", "endless"):
        with pytest.raises((FileError, OSError), match=name):
            open_appending(tmp_path / name)


def test_a_file_is_written_on_at_its_end(tmp_path: Path) -> None:
    """And made if it is not there."""
    for line in ("a", "b"):
        with open_appending(tmp_path / "x.log") as file:
            file.write(line)

    assert (tmp_path / "x.log").read_text(encoding="utf-8") == "ab"
