"""Answers by whoever looks into a folder: a prompt is a file, and so is the reply."""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

from actors.providers.port import Completion, ProviderError, Question
from decisions.tags import MAX_REPLY_BYTES

POLL_S = 0.5
SETTLE_S = 1.0
"""A reply that was written in place, not renamed, is taken when it has not grown for so long."""
PROMPT, REPLY = ".prompt.md", ".reply.md"
_Version = tuple[int, int, int]
"""A file's inode, size and time of change, ns."""


class ManualProvider:
    """Writes ``NAME.prompt.md`` and waits for ``NAME.reply.md``; every turn has its own name.

    Args:
        folder: made if it is not there.
        timeout_s: how long a reply may take.
        clock: monotonic seconds.
        sleep: waits, in seconds.
    """

    def __init__(
        self,
        folder: Path,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"manual:{folder.name}"
        self._folder, self._timeout_s = folder, timeout_s
        self._clock, self._sleep = clock, sleep

    def complete(self, question: Question) -> Completion:
        """Return the reply's text, whenever it was written: a resumed run finds it as well.

        The prompt's file is there as long as its reply is waited for.

        Raises:
            ProviderError: the folder cannot be used, or there is no usable reply in time.
        """
        prompt, reply = self._files(question)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(prompt, question.prompt)
            data = self._wait(reply)
            prompt.unlink(missing_ok=True)
        except OSError as e:
            raise ProviderError(f"{self.name}: {e.strerror}: {e.filename!r}") from e
        except ValueError as e:  # a NUL in the folder's name
            raise ProviderError(f"{self.name}: {e}") from e
        if data is None:
            reason = f"{self.name}: no {reply.name} within {self._timeout_s:g} s"
            raise ProviderError(f"{reason}; raise 'timeout_s'", n_calls=1, usage=None)
        return self._read(data, reply.name)

    def _files(self, question: Question) -> tuple[Path, Path]:
        turn = question.turn
        kernel = re.sub(r"[^A-Za-z0-9_-]", "_", turn.kernel)
        name = f"{turn.turn:05d}-{kernel}-{turn.task}-{question.sha[:8]}"
        return self._folder / f"{name}{PROMPT}", self._folder / f"{name}{REPLY}"

    def _wait(self, reply: Path) -> bytes | None:
        """Wait for a reply that nobody writes any more; None if there is none in time."""
        deadline = self._clock() + self._timeout_s
        seen: _Version | None = None
        since = self._clock()
        while self._clock() <= deadline:
            now, version = self._clock(), _version(reply)
            if version != seen:
                seen, since = version, now
            elif version is not None and now - since >= SETTLE_S:
                return _beginning(reply)
            self._sleep(POLL_S)
        return None

    def _read(self, data: bytes, file: str) -> Completion:
        problem = None
        if len(data) > MAX_REPLY_BYTES:
            problem = f"is longer than {MAX_REPLY_BYTES >> 10} KB"
        elif not data.strip():
            problem = "is empty"
        if problem is not None:
            raise ProviderError(f"{self.name}: {file} {problem}", n_calls=1, usage=None)
        return Completion(data.decode("utf-8", "replace"), usage=None, n_calls=1)


def _write(path: Path, text: str) -> None:
    """Let a file appear whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(text.encode("utf-8", "replace"))
    draft.replace(path)


def _version(path: Path) -> _Version | None:
    """What tells a file from what it was before; None if there is no regular file with anything."""
    with contextlib.suppress(FileNotFoundError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size:
            return about.st_ino, about.st_size, about.st_mtime_ns
    return None


def _beginning(path: Path) -> bytes:
    """What a file holds, up to one byte more than a reply may have."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        return file.read(MAX_REPLY_BYTES + 1)
