"""The vendor's Arena service through its command line: jobs on a chip that others use too."""

import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from targets.protocol import TargetError
from targets.rngd.opt.outcomes import Ending, Failed
from targets.rngd.opt.programs import Said, ask

PROGRAM: Final = "furiosa-arena"
MAX_JOB_S: Final = 70
"""Of a job's run: the service refuses a longer timeout."""
MAX_JOBS: Final = 2
"""Of one account at a time; one more is refused, not queued."""
GRACE_S: Final = 15.0
"""That a job may go on past its timeout before it is taken to hang: the service has to end it."""
_CALL_S: Final = 60.0
"""Of one call of the program, an upload of about 5 MB included."""
_MAX_SILENT: Final = 3
"""Answers in a row that tell no state, after which a job is lost."""
_QUOTA: Final = re.compile(r"quota|concurrent|too many (?:active )?jobs", re.IGNORECASE)
_JOB: Final = re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f-]{0,28})\b")
_STATE: Final = re.compile(r"\b(queued|running|succeeded|failed|completed|cancelled)\b")
_EXIT: Final = re.compile(r"exit_code\W+(-?\d+)")


class Clock(NamedTuple):
    """Time, as a client that waits needs it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Job:
    """What is submitted."""

    name: str
    files: Sequence[Path]
    entrypoint: str
    """Name of the file that is run."""
    timeout_s: int


@dataclass(frozen=True)
class Ended:
    """A job that ran to an end of its own."""

    status: int | None
    """Its exit code, None if the service does not tell."""
    log: str


class Arena:
    """Submits jobs, one at a time, and says how each ended."""

    def __init__(self, wait_s: float = 1800.0, poll_s: float = 5.0, clock: Clock | None = None):
        """Wait ``wait_s`` for a place and again in the queue, and look every ``poll_s``."""
        self._wait_s, self._poll_s, self._clock = wait_s, poll_s, clock or Clock()

    def run(self, job: Job) -> Ended | Failed:
        """Run a job; whatever goes wrong with it is a value.

        Raises:
            TargetError: the program is missing.
        """
        if job.timeout_s > MAX_JOB_S:
            return Failed("rejected", f"a job may take {MAX_JOB_S} s, this one {job.timeout_s} s")
        submitted = self._submit(job)
        return submitted if isinstance(submitted, Failed) else self._await(submitted, job)

    def _submit(self, job: Job) -> str | Failed:
        """Return the job's id; where the account has too many jobs, try until the deadline."""
        options = ("--name", job.name, "--entrypoint", job.entrypoint)
        timeout = ("--timeout", str(job.timeout_s))
        deadline = self._clock.now() + self._wait_s
        while True:
            said = _call("submit", *map(str, job.files), *options, *timeout)
            found = _JOB.search(said.out)
            if said.status == 0 and found:
                return found[0]
            if said.status is None:
                return Failed("lost", "the service did not say whether it took the job")
            if not _QUOTA.search(said.out + said.err):
                return Failed("rejected", said.reason if said.status else "no job was named")
            if self._clock.now() + self._poll_s > deadline:
                return Failed("quota", f"{MAX_JOBS} other jobs for {self._wait_s:.0f} s")
            self._clock.sleep(self._poll_s)

    def _await(self, job_id: str, job: Job) -> Ended | Failed:
        now = self._clock.now
        queued_until = now() + self._wait_s
        hangs_at: float | None = None
        silent = 0
        while True:
            said = _call("status", job_id)
            state = _STATE.search(said.out) if said.status == 0 else None
            silent = 0 if state else silent + 1
            match state[1] if state else "":
                case "succeeded" | "failed" | "completed":
                    return self._ended(job_id, said.out)
                case "cancelled":
                    return Failed("cancelled", f"job {job_id} was cancelled from outside")
                case "running" if hangs_at is None:
                    hangs_at = now() + job.timeout_s + GRACE_S
            if silent >= _MAX_SILENT:
                return self._given_up(job_id, "lost", f"its state is not told: {said.reason}")
            if hangs_at is not None and now() > hangs_at:
                return self._given_up(job_id, "hung", f"still running after {job.timeout_s} s")
            if hangs_at is None and now() > queued_until:
                return self._given_up(job_id, "lost", f"still queued after {self._wait_s:.0f} s")
            self._clock.sleep(self._poll_s)

    def _ended(self, job_id: str, status: str) -> Ended | Failed:
        """Fetch the log, a second time where the first is empty: it can come late."""
        said = _call("logs", job_id)
        if not said.out.strip():
            self._clock.sleep(self._poll_s)
            said = _call("logs", job_id)
        if said.status != 0:
            return Failed("lost", f"job {job_id} has ended, its log is not told: {said.reason}")
        code = _EXIT.search(status)
        return Ended(int(code[1]) if code else None, said.out)

    def _given_up(self, job_id: str, ending: Ending, detail: str) -> Failed:
        """Cancel a job, so that it holds no place, and say why."""
        cancelled = _call("cancel", job_id).status == 0
        after = "" if cancelled else ", and it could not be cancelled"
        log = _call("logs", job_id).out
        return Failed(ending, f"job {job_id}: {detail}{after}", log=log)


def _call(*arguments: str) -> Said:
    program = shutil.which(PROGRAM)
    if program is None:
        raise TargetError(f"{PROGRAM} is not on the path, so there is no chip: install it, log in")
    return ask((program, *arguments), _CALL_S)
