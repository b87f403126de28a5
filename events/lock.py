"""One writer a run: the lock that the writer of a log holds, and how it knows that it lost it."""

import errno
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from events.errors import LogBusyError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 4096
FIRST_EPOCH = 1
_UNREADABLE = (ValueError, KeyError, TypeError, RecursionError, OverflowError)
"""What a damaged signature can raise."""
_NAMELESS = "a process that has not given its name yet"


class Lock:
    """An exclusive lock that ends with its process, whoever that process has forked.

    Attributes:
        epoch: number of this writer, higher than that of any writer whose name the file held.
    """

    def __init__(self, path: Path) -> None:
        self.epoch = 0
        self._path = path
        self._name = str(path)
        self._fd = -1
        self._file = (0, 0)
        self._signature = b""

    @property
    def held(self) -> bool:
        """Whether this very process took it and has not let go."""
        return self._fd >= 0

    def is_ours(self) -> bool:
        """Whether the file is still the one that was locked, and signed by nobody else since."""
        try:
            there = os.stat(self._name)
            signature = os.pread(self._fd, len(self._signature) + 1, 0)
        except OSError:
            return False
        return signature == self._signature and (there.st_dev, there.st_ino) == self._file

    def exceed(self, epoch: int) -> bool:
        """Be a later writer than ``epoch``, that of the last writer whose work there is.

        Returns:
            Whether the file knew of no such writer, so that one may be alive.
        """
        is_unknown = self.epoch == FIRST_EPOCH or self.epoch <= epoch
        if self.epoch <= epoch:
            self._sign(epoch + 1)
        return is_unknown

    def __enter__(self) -> Self:
        owner = self._take()
        while not self._is_at_path():  # somebody has put another file there meanwhile
            self.drop()
            owner = self._take()
        _HELD.add(self)
        try:
            self._sign(FIRST_EPOCH + _epoch(owner))
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        _HELD.discard(self)
        self.drop()

    def drop(self) -> None:
        """Close this process's handle; an unlock would take the lock from the parent as well."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self) -> bytes:
        """Lock the file at the path; return what its last owner wrote into it."""
        import fcntl  # not everywhere, and readers do without

        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            owner = os.pread(self._fd, _MAX_BYTES, 0)
            self.drop()
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LogBusyError(self._path, _owner_name(owner)) from None
            raise
        opened = os.fstat(self._fd)
        self._file = (opened.st_dev, opened.st_ino)
        return os.pread(self._fd, _MAX_BYTES, 0)

    def _is_at_path(self) -> bool:
        with suppress(FileNotFoundError):
            there = os.stat(self._path)
            return (there.st_dev, there.st_ino) == self._file
        return False

    def _sign(self, epoch: int) -> None:
        owner = {"pid": os.getpid(), "host": platform.node(), "boot": _boot(), "epoch": epoch}
        signature = json.dumps(owner).encode()
        if os.pwrite(self._fd, signature, 0) != len(signature):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        os.ftruncate(self._fd, len(signature))
        self.epoch, self._signature = epoch, signature


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock at ``path`` now; asking holds it for a moment itself."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as e:
        if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return True
        raise
    finally:
        os.close(fd)
    return False


def _epoch(signature: bytes) -> int:
    """The epoch of the one who signed; 0 if that cannot be read."""
    try:
        epoch = json.loads(signature)["epoch"]
    except _UNREADABLE:
        return 0
    return epoch if isinstance(epoch, int) and 0 <= epoch < 1 << 31 else 0


def _owner_name(signature: bytes) -> str:
    """Who signed the lock, for people."""
    try:
        owner = json.loads(signature)
        if _is_gone(owner):
            return _NAMELESS
        return f"process {owner['pid']} on {owner['host']} (boot {owner['boot']})"
    except _UNREADABLE:
        return _NAMELESS


def _is_gone(owner: dict[str, Any]) -> bool:
    """Whether the one who signed has ended; on another machine that is not known."""
    if (owner["host"], owner["boot"]) == (platform.node(), _boot()):
        try:
            with suppress(PermissionError):
                os.kill(owner["pid"], 0)
        except ProcessLookupError:
            return True
    return False


def _boot() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


_HELD: set[Lock] = set()
"""Locks of this process; a forked child lets go of them at once."""


def _drop_all() -> None:
    for lock in _HELD:
        lock.drop()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
