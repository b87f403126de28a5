"""A program of the user's own (never a candidate's) as a subprocess with an end."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from targets.protocol import TargetError
from targets.sandbox.runner import awaited, begin_of

MAX_PRINTED: Final = 4 << 20
"""Bytes that are read of what a program printed, of either stream."""


class Said(NamedTuple):
    """How a program ended."""

    status: int | None
    """None: it ran past its limit, and was ended with all that it had started."""
    out: str
    err: str

    @property
    def reason(self) -> str:
        """Say in one line what went wrong."""
        if self.status is None:
            return "no answer in time"
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1][:300] if lines else f"exit status {self.status}, and not a word"


def ask(command: Sequence[str], limit_s: float, folder: Path | None = None) -> Said:
    """Run a program without a shell and wait for it.

    Raises:
        TargetError: it cannot be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as e:
            raise TargetError(f"{command[0]} does not start: {e.strerror}") from e
        status = awaited(process, limit_s)
        return Said(status, begin_of(out, MAX_PRINTED), begin_of(err, MAX_PRINTED))
