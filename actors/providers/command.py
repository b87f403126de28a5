"""Answers by running a command-line agent: the prompt on its stdin, the reply on its stdout."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from actors.providers.port import Completion, ProviderError, Question
from decisions.tags import MAX_REPLY_BYTES

_STDERR_TAIL = 2000
_CHUNK = 1 << 16
_POLL_S = 0.02


class CommandProvider:
    """Runs one process per reply, in a process group of its own that never outlives the reply."""

    def __init__(self, command: tuple[str, ...], timeout_s: float) -> None:
        self.name = f"command:{Path(command[0]).name}"
        self._command = command
        self._timeout_s = timeout_s

    def complete(self, question: Question) -> Completion:
        """Return what the command prints; nobody says what tokens it took.

        Raises:
            ProviderError: it cannot be started, takes too long, prints too much or nothing, or
                exits with another status than 0; the reason ends with its last words on stderr.
        """
        with _running(self._command) as process:
            conversation = _Conversation(process, question.prompt.encode("utf-8", "replace"))
            problem = conversation.hold(time.monotonic() + self._timeout_s)
        text = conversation.out.decode("utf-8", "replace")
        if problem is None and process.returncode != 0:
            problem = f"exit status {process.returncode}"
        if problem is None and not text.strip():
            problem = "empty reply"
        if problem is not None:
            reason = self._explain(problem, bytes(conversation.err))
            raise ProviderError(reason, n_calls=1, usage=None)
        return Completion(text, usage=None, n_calls=1)

    def _explain(self, problem: str, err: bytes) -> str:
        last_words = err.decode("utf-8", "replace").strip()
        return f"{self.name}: {problem}" + (f"; stderr: {last_words}" if last_words else "")


@contextlib.contextmanager
def _running(command: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``command``; at the end kill its whole process group and reap it."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as e:
        reason = f"cannot start {command[0]!r}: {e.strerror}; check the model's 'command'"
        raise ProviderError(reason) from e
    try:
        yield process
    finally:
        # Before the leader is reaped its process group id cannot belong to anybody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class _Conversation:
    """Feeds stdin and collects stdout and stderr without blocking."""

    def __init__(self, process: subprocess.Popen[bytes], prompt: bytes) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._pid = process.pid
        self._unsent = memoryview(prompt)
        self._selector = selectors.DefaultSelector()
        self._register(process.stdin, selectors.EVENT_WRITE, self._send)
        self._register(process.stdout, selectors.EVENT_READ, self._receive_out)
        self._register(process.stderr, selectors.EVENT_READ, self._receive_err)

    def _register(
        self, stream: IO[bytes] | None, event: int, action: Callable[[IO[bytes]], bool]
    ) -> None:
        assert stream is not None  # all three are pipes
        os.set_blocking(stream.fileno(), False)
        self._selector.register(stream, event, action)

    def hold(self, deadline: float) -> str | None:
        """Go on until the command has exited; return what is wrong, or None.

        A child that keeps the pipes open after the command has exited is not waited for.
        """
        with self._selector:
            while len(self.out) <= MAX_REPLY_BYTES:
                if time.monotonic() > deadline:
                    return "time limit reached; raise 'timeout_s' or ask for less"
                exited = _has_exited(self._pid)
                moved = self._exchange(_POLL_S if not exited else 0.0)
                if exited and not moved:
                    return None
        return f"more than {MAX_REPLY_BYTES >> 10} KB of output"

    def _exchange(self, wait_s: float) -> bool:
        """Move what can be moved; return whether anything was received."""
        if not self._selector.get_map():
            time.sleep(wait_s)
            return False
        ready = self._selector.select(wait_s)
        received = [key.data(key.fileobj) for key, _ in ready]
        return any(received)

    def _send(self, stream: IO[bytes]) -> bool:
        try:
            sent = os.write(stream.fileno(), self._unsent[:_CHUNK])
        except BrokenPipeError:  # it does not want to read on; its exit status will tell
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._close(stream)
        return False

    def _receive_out(self, stream: IO[bytes]) -> bool:
        return self._receive(stream, self.out)

    def _receive_err(self, stream: IO[bytes]) -> bool:
        received = self._receive(stream, self.err)
        del self.err[:-_STDERR_TAIL]
        return received

    def _receive(self, stream: IO[bytes], buffer: bytearray) -> bool:
        chunk = os.read(stream.fileno(), _CHUNK)
        buffer += chunk
        if not chunk:
            self._close(stream)
        return bool(chunk)

    def _close(self, stream: IO[bytes]) -> None:
        self._selector.unregister(stream)
        stream.close()


def _has_exited(pid: int) -> bool:
    """Whether a child has exited, without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
