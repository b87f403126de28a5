"""One runner process: what it is told, what it reports, and why it stopped."""

import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from targets.cpu.image import PAGE, Image
from targets.protocol import TargetError
from targets.sandbox.runner import REFUSED, kill_group, runner

_MAGIC: Final = 0x6B776A31
_ANY_CORE: Final = 2**64 - 1
_ROLES: Final = {"in": 0, "weight": 1, "out": 2, "inout": 3, "scratch": 4}
_REPORT: Final = struct.Struct("=6Q")
_SPACE: Final = 2 << 30
"""Address space of a runner beyond its buffers."""
_MAX_TEXT: Final = 4096
_MAX_PAUSE_S: Final = 1e-5
"""Between the announcement of a launch and its beginning: some ten times what is usual."""


class Kind(IntEnum):
    """Kinds of reports, as the runner numbers them."""

    LOADING = 1
    READY = 2
    PROBED = 3
    STARTED = 4
    ENDED = 5
    OUTPUTS = 6
    DONE = 7
    FAULT = 8
    BROKEN = 9


class Step(NamedTuple):
    """One launch that the runner is to do."""

    arm: int
    copy: int
    variant: int
    room: int
    """Which set of output buffers."""
    poison: int
    """Byte that outputs and scratch are filled with beforehand."""
    probe: bool = False
    """Whether a condition probe comes first."""
    report: bool = False
    """Whether the outputs are sent back."""


@dataclass(frozen=True)
class Launch:
    """What the runner reported of one launch; times in seconds on the monotonic clock."""

    announced_s: float
    begun_s: float
    ended_s: float
    seen_start_s: float
    """When this process read the announcement: out of the artifact's reach."""
    seen_end_s: float
    overrun: str
    """Buffer whose surroundings were overwritten; "" if none was."""
    probe_s: float | None
    outputs: bytes | None

    @property
    def claimed_s(self) -> float:
        """How long it took by the runner's clock.

        An artifact could reach the reading of the beginning, but not the announcement, which was
        gone by then.
        """
        return self.ended_s - min(self.begun_s, self.announced_s + _MAX_PAUSE_S)


@dataclass(frozen=True)
class Stop:
    """Why a job did not come to its end."""

    arm: int | None
    """Arm that was loading or running; None: neither."""
    reason: str


@dataclass(frozen=True)
class Transcript:
    """The launches of a job that ended, and why there are no more."""

    launches: tuple[Launch, ...]
    stop: Stop | None


class _Report(NamedTuple):
    kind: int
    step: int
    a: int
    b: int
    c: int
    d: int


class _StoppedError(Exception):
    """The runner will report no more launches."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def run_job(
    image: Image,
    arms: Sequence[bytes],
    steps: Sequence[Step],
    *,
    limit_s: float,
    call_limit_s: float,
    core: int | None = None,
) -> Transcript:
    """Run ``steps`` in a fresh confined process and leave no process behind.

    Args:
        image: inputs.
        arms: artifacts, loaded side by side.
        steps: launches, in order.
        limit_s: of the whole process.
        call_limit_s: of one launch.
        core: to run on; None leaves it to the system.

    Raises:
        TargetError: the kernel refuses to confine the process.
    """
    with ExitStack() as stack:
        job = stack.enter_context(_memory(_describe(image, steps, core)))
        fds = [stack.enter_context(_memory(artifact)) for artifact in arms]
        process, pipe = _start(image, job, fds, limit_s)
        stack.callback(os.close, pipe)
        try:
            conversation = _Conversation(image, len(arms), steps, pipe, limit_s, call_limit_s)
            launches, stop = conversation.listen()
        finally:
            kill_group(process)
    if process.returncode == REFUSED and not conversation.is_ready:
        raise TargetError("the kernel refuses to confine an untrusted kernel")
    return Transcript(tuple(launches), stop)


@contextmanager
def _memory(data: bytes) -> Iterator[int]:
    fd = os.memfd_create("kernelwright")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        yield fd
    finally:
        os.close(fd)


def _describe(image: Image, steps: Sequence[Step], core: int | None) -> bytes:
    buffers = image.kernel.buffers
    n_rooms = 1 + max((step.room for step in steps), default=0)
    where = _ANY_CORE if core is None else core
    words = [_MAGIC, PAGE, where, len(buffers), len(image.weight_offsets)]
    words += [len(image.input_offsets), n_rooms, len(steps)]
    for buffer in buffers:
        words += [_ROLES[buffer.part], buffer.n_bytes]
    for offsets in (*image.weight_offsets, *image.input_offsets):
        words += offsets
    for step in steps:
        words += step
    return struct.pack(f"={len(words)}Q", *words)


def _start(
    image: Image, job: int, arms: Sequence[int], limit_s: float
) -> tuple[subprocess.Popen[bytes], int]:
    read, write = os.pipe()
    mapped = sum(b.n_bytes for b in image.kernel.buffers) * len(image.weight_offsets)
    limits = (int(limit_s) + 60, image.n_bytes + mapped + _SPACE)
    fds = (job, image.fd, write, *arms)
    command = [str(runner()), "job", *map(str, (os.getpid(), *limits, *fds))]
    try:
        process = subprocess.Popen(
            command,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
        )
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    return process, read


class _Conversation:
    """Reads the reports of one runner and holds it to their order."""

    def __init__(
        self,
        image: Image,
        n_arms: int,
        steps: Sequence[Step],
        pipe: int,
        limit_s: float,
        call_limit_s: float,
    ) -> None:
        self._image, self._n_arms, self._steps, self._pipe = image, n_arms, steps, pipe
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)
        self._end_s = time.monotonic() + limit_s
        self._limit_s, self._call_limit_s = limit_s, call_limit_s
        self._call_end_s = self._end_s
        self._buffered = bytearray()
        self._arm: int | None = None
        self.is_ready = False
        """Everything is loaded and confined: what happens from now on is an artifact's doing."""

    def listen(self) -> tuple[list[Launch], Stop | None]:
        """Collect the launches up to the last or to the one that stopped the job."""
        launches: list[Launch] = []
        try:
            for arm in range(self._n_arms):
                self._expect(Kind.LOADING, arm)
                self._arm = arm
            self._expect(Kind.READY, 0)
            self.is_ready = True
            for i, step in enumerate(self._steps):
                launches.append(self._launch(i, step))
            self._expect(Kind.DONE, len(self._steps) - 1)
        except _StoppedError as e:
            return launches, Stop(self._arm, e.reason)
        return launches, None

    def _launch(self, i: int, step: Step) -> Launch:
        probe = self._expect(Kind.PROBED, i).a / 1e9 if step.probe else None
        started = self._expect(Kind.STARTED, i)
        seen_start_s = time.monotonic()
        self._arm = step.arm
        self._call_end_s = min(self._end_s, seen_start_s + self._call_limit_s)
        ended = self._expect(Kind.ENDED, i)
        seen_end_s = time.monotonic()
        self._call_end_s = self._end_s
        overrun = self._name(ended.c - 1) if ended.c else ""
        outputs = self._outputs(i) if step.report else None
        times = (started.a / 1e9, ended.a / 1e9, ended.b / 1e9, seen_start_s, seen_end_s)
        return Launch(*times, overrun, probe, outputs)

    def _outputs(self, i: int) -> bytes:
        wanted = sum(b.n_bytes for b in self._image.kernel.buffers if b.part in ("out", "inout"))
        if self._expect(Kind.OUTPUTS, i).a != wanted:
            raise _StoppedError("it wrote to the harness's own channel")
        return self._take(wanted)

    def _expect(self, kind: Kind, step: int) -> _Report:
        report = _Report(*_REPORT.unpack(self._take(_REPORT.size)))
        if report.kind == Kind.FAULT:
            raise _StoppedError(self._fault(report))
        if report.kind == Kind.BROKEN:
            text = self._take(min(report.a, _MAX_TEXT)).decode("utf-8", "replace")
            raise _StoppedError(f"cannot be run: {text}")
        if (report.kind, report.step) != (kind, step):
            raise _StoppedError("it wrote to the harness's own channel")
        return report

    def _take(self, n: int) -> bytes:
        while len(self._buffered) < n:
            self._wait()
            if not (data := os.read(self._pipe, max(65536, n - len(self._buffered)))):
                raise _StoppedError("the process ended early")
            self._buffered += data
        taken = bytes(self._buffered[:n])
        del self._buffered[:n]
        return taken

    def _wait(self) -> None:
        left = self._call_end_s - time.monotonic()
        if left <= 0 or not self._poll.poll(1 + int(left * 1000)):
            limit = self._limit_s if self._call_end_s == self._end_s else self._call_limit_s
            raise _StoppedError(f"time limit of {limit:g} s")

    def _name(self, buffer: int) -> str:
        buffers = self._image.kernel.buffers
        return buffers[buffer].name if buffer < len(buffers) else "a buffer"

    def _fault(self, report: _Report) -> str:
        name = self._name(report.d)
        match report.a, report.c:
            case signal.SIGSYS, _:
                return f"system call {report.b}"
            case signal.SIGSEGV | signal.SIGBUS, 1:
                return f"segmentation fault before the start of {name}"
            case signal.SIGSEGV | signal.SIGBUS, 2:
                return f"segmentation fault: wrote to the read-only {name}"
            case signal.SIGSEGV | signal.SIGBUS, 3:
                return f"segmentation fault past the end of {name}"
            case signal.SIGSEGV, _:
                return "segmentation fault"
            case number, _:
                return _signal_text(number)


def _signal_text(number: int) -> str:
    try:
        return (signal.strsignal(number) or f"signal {number}").lower()
    except ValueError:
        return f"signal {number}"
