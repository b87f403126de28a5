"""The confined process that launches kernels, and the messages between it and this one."""

import json
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from threading import Event, Timer
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from targets.protocol import TargetError
from targets.rngd.environment import Environment
from targets.sandbox.confined import ALONE, MAX_PRINTED, Limits, confined, left_in
from targets.sandbox.runner import environment as variables
from targets.sandbox.runner import kill_group

PROGRAM: Final = Path(__file__).with_name("launcher.py")
START_LIMIT_S: Final = 180.0
"""Importing the runtime takes 6 s of processor time, of which others may have a part."""
_LIMITS: Final = Limits(
    wall_s=0.0, cpu_s=4 * 3600, space_bytes=16 << 30, file_bytes=1 << 20, processes=ALONE
)
"""Of a server, as long as it lives; each answer has a time limit of its own."""
_POISON: Final = {"MALLOC_PERTURB_": "128"}
"""Memory begins as bytes 0x7f: NaN in f8, huge in every other format."""
_USER: Final = {"USER": "kernelwright"}
"""The runtime asks, and sees no list of users."""
_PRINTED: Final = "printed"
_RANDOM: Final = "/dev/urandom"
_MAX_HEAD: Final = 64 << 10


class StoppedError(Exception):
    """A server that gave no answer; the text says why."""


class Server:
    """A process of the toolchain's own interpreter that answers one question after the other."""

    def __init__(self, environment: Environment) -> None:
        """Start it.

        Raises:
            TargetError: it does not start here.
        """
        reads = environment.for_python(vendor_kernels=True)  # the runtime imports some
        reads = reads._replace(roots=(*reads.roots, str(PROGRAM), _RANDOM))
        folder = Path(tempfile.mkdtemp(prefix="kernelwright-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        command = (str(environment.python), "-I", "-B", str(PROGRAM))
        with (folder / _PRINTED).open("wb") as printed:
            self._process = subprocess.Popen(
                confined(command, folder, _LIMITS, reads),
                bufsize=0,
                cwd=folder,
                env={**variables(folder), **_POISON, **_USER},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                start_new_session=True,
            )
        self.end = weakref.finalize(self, _end, self._process)
        """Ends the process; at the latest when this one ends."""
        try:
            with self.within(START_LIMIT_S):
                self.expect({"ready": True})
        except StoppedError as e:
            printed_last = (left_in(folder / _PRINTED, MAX_PRINTED) or b"").split(b"\n")[-2:]
            said = f"{e}: {b''.join(printed_last).decode('utf-8', 'replace')}"
            raise TargetError(f"the functional runtime does not start here: {said}") from e

    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Hold a conversation to a time limit, and end the process if it goes wrong.

        Raises:
            StoppedError: it went wrong.
        """
        late = Event()
        timer = Timer(limit_s, self._kill, [late])
        timer.start()
        try:
            yield
        except (StoppedError, BrokenPipeError) as e:
            self.end()
            reason = str(e) if isinstance(e, StoppedError) else "the process ended early"
            raise StoppedError(f"time limit of {limit_s:g} s" if late.is_set() else reason) from e
        finally:
            timer.cancel()

    def _kill(self, late: Event) -> None:
        late.set()
        kill_group(self._process)

    def send(self, ask: object, arrays: Sequence[NDArray[Any]]) -> None:
        """Ask."""
        head = json.dumps(ask).encode()
        self._write(memoryview(len(head).to_bytes(8, "little") + head))
        for array in arrays:
            self._write(array.ravel().data.cast("B"))

    def _write(self, view: memoryview) -> None:
        while view:
            view = view[self._asks.write(view) :]

    def expect(self, wanted: object) -> None:
        """Read the next message.

        Raises:
            StoppedError: it is not ``wanted``.
        """
        n_bytes = int.from_bytes(self._read(8), "little")
        if n_bytes > _MAX_HEAD:
            raise StoppedError("it answered nonsense")
        try:
            said = json.loads(self._read(n_bytes))
        except (ValueError, RecursionError) as e:
            raise StoppedError("it answered nonsense") from e
        if isinstance(said, dict) and isinstance(said.get("error"), str):
            first = said["error"].partition("\n")[0]
            raise StoppedError(f"the runtime refuses it: {first}")
        if said != wanted:
            raise StoppedError("it answered something else than it was asked")

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Read the next array."""
        return np.frombuffer(self._read(prod(shape) * dtype.itemsize), dtype).reshape(shape)

    def _read(self, n_bytes: int) -> bytearray:
        data = bytearray(n_bytes)
        view = memoryview(data)
        while view:
            if not (n := self._answers.readinto(view)):
                raise StoppedError("the process ended early")
            view = view[n:]
        return data

    @property
    def _asks(self) -> IO[bytes]:
        assert self._process.stdin
        return self._process.stdin

    @property
    def _answers(self) -> Any:
        return self._process.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    kill_group(process)
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
