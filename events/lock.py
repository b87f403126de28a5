"""One writer a run: the lock that the writer of a log holds."""

import errno
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Self

from events.errors import LogBusyError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Lock:
    """An exclusive lock that ends with its process, whoever that process has forked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def held(self) -> bool:
        """Whether this very process holds it."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        import fcntl  # not everywhere, and readers do without

        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            owner = os.pread(self._fd, 4096, 0)
            self.drop()
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LogBusyError(self._path, _owner_name(owner)) from None
            raise
        _HELD.add(self)
        self._sign()
        return self

    def __exit__(self, *exc: object) -> None:
        _HELD.discard(self)
        self.drop()

    def drop(self) -> None:
        """Close this process's handle; an unlock would take the lock from the parent as well."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _sign(self) -> None:
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
        owner = {"pid": os.getpid(), "host": platform.node(), "boot": boot}
        with suppress(OSError):  # for people only
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(owner).encode(), 0)


def _owner_name(signature: bytes) -> str:
    """Who signed the lock, for people."""
    try:
        owner = json.loads(signature)
        return f"process {owner['pid']} on {owner['host']} (boot {owner['boot']})"
    except (ValueError, KeyError, TypeError):
        return "a process that has not given its name yet"


_HELD: set[Lock] = set()
"""Locks of this process; a forked child lets go of them at once."""


def _drop_all() -> None:
    for lock in _HELD:
        lock.drop()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
