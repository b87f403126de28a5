"""Files that a user names: read up to a limit, and written whole or not at all."""

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import TextIO

MARK_BYTES = 1 << 14
"""Of the beginning of a file, within which it says who wrote it."""


class FileError(Exception):
    """A file that cannot be used as a user asked.

    Attributes:
        path: of the file.
        reason: why not, as the end of a sentence that begins with the path.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


def read_file(path: Path, max_bytes: int) -> bytes:
    """Read a regular file, which neither blocks nor fills the memory.

    Raises:
        FileError: it cannot be read, is a folder, pipe or device, or is too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileError(path, "is no file")
            data = file.read(max_bytes + 1)
    except IsADirectoryError:
        raise FileError(path, "is no file") from None
    except OSError as e:
        raise FileError(path, f"cannot be read ({e.strerror})") from e
    except ValueError as e:  # a NUL in its name
        raise FileError(path, f"cannot be read ({e})") from e
    if len(data) > max_bytes:
        raise FileError(path, f"is larger than {max_bytes >> 20} MB")
    return data


def open_appending(path: Path) -> TextIO:
    """Open a text file to write at its end; it is made if it is not there.

    Raises:
        FileError: it is a pipe or device.
        OSError: it cannot be opened; it names the file.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError(path, "is no file")
    return os.fdopen(descriptor, "a", encoding="utf-8")


def check_free(path: Path, mark: str) -> None:
    """Let a command replace a file of its own, and nothing else.

    Args:
        path: where it wants to write.
        mark: what is among the first bytes of every file of its own.

    Raises:
        FileError: something else is there.
    """
    if path.is_file():
        with path.open("rb") as file:
            if mark.encode() in file.read(MARK_BYTES):
                return
    if path.exists():
        raise FileError(path, "is there, and was written by another; move it away, or name another")


def write(path: Path, data: bytes) -> None:
    """Write a file whole, or leave what was there: half of one would be taken for the real thing.

    A link gives way to the file, so that nothing is written elsewhere.

    Raises:
        OSError: it cannot be written; it names the file.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.draft")
    try:
        _check_replaceable(path)
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if path.is_file():
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as e:
        raise OSError(e.errno, e.strerror, path) from e


def _check_replaceable(path: Path) -> None:
    """A pipe or a device must not give way to a file."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileExistsError(errno.EEXIST, "is no file that can be replaced", path)
