"""The exclusive lease of a device, shared by all campaigns of one machine."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lease(path: Path) -> Iterator[int]:
    """Hold the device; wait for whoever holds it now.

    The lock is the kernel's, so it ends with its holder, however that ends.

    Yields:
        The fencing token: one more than any holder before had.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        text = os.pread(handle, 64, 0).split()
        token = (int(text[0]) if text and text[0].isdigit() else 0) + 1
        # In this order a holder that dies in between leaves a token that is not too old.
        size = os.pwrite(handle, f"{token} {os.getpid()}\n".encode(), 0)
        os.ftruncate(handle, size)
        yield token
    finally:
        os.close(handle)
