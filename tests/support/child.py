"""A forked process of a test, which does some work and says lines; it may be killed at any time."""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

Say = Callable[[str], None]
Work = Callable[[Say], None]

_SET_TRACER, _ANYBODY = 0x59616D61, -1


class Child:
    """A process that does ``work`` once it is told to go.

    Attributes:
        pid: its number.
        lines: what it says; one that it was killed in the middle of has no end.
    """

    def __init__(self, work: Work) -> None:
        lines, to_parent = os.pipe()
        from_parent, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            _do(work, from_parent, to_parent)
        os.close(to_parent)
        os.close(from_parent)
        self.lines = open(lines, "rb")  # noqa: SIM115
        assert self.lines.readline() == b"ready\n"

    def go(self) -> "Child":
        """Let it begin."""
        os.write(self._go, b"!")
        os.close(self._go)
        return self

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self) -> list[str]:
        """Wait until it ends; return the lines that it said and nobody has read.

        Raises:
            AssertionError: it failed with an error of its own.
        """
        with self.lines:
            said = self.lines.read()
        status = os.waitpid(self.pid, 0)[1]
        assert os.WIFSIGNALED(status) or status == 0, f"process {self.pid} failed: see its error"
        return said[: said.rfind(b"\n") + 1].decode().splitlines()


def _do(work: Work, from_parent: int, to_parent: int) -> NoReturn:
    status = 1
    try:
        _be_traceable()
        _say(to_parent, "ready")
        os.read(from_parent, 1)
        sys.settrace(None)  # what coverage notes in a process that ends like this is lost anyway
        work(lambda line: _say(to_parent, line))
        status = 0
    except BaseException:  # noqa: BLE001  whatever it is, pytest must not go on twice
        traceback.print_exc(file=sys.__stderr__)
    os._exit(status)


def _be_traceable() -> None:
    """Let any process of the user's trace this one; some systems let only its ancestors."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_TRACER, _ANYBODY)


def _say(fd: int, line: str) -> None:
    os.write(fd, f"{line}\n".encode())
