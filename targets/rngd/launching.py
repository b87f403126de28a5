"""Launches of kernels on the processor of this machine."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from targets.rngd.environment import Environment
from targets.rngd.serving import Server, StoppedError
from targets.rngd.task import Parameter, Task

LAUNCH_LIMIT_S: Final = 180.0
"""On the clock: a whole feed-forward takes 8 s of processor time; others may have a part of it."""
STORAGE: Final[Mapping[str, np.dtype[Any]]] = {
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f8_e4": np.dtype(np.uint8),
    "i32": np.dtype(np.int32),
    "u8": np.dtype(np.uint8),
}
"""Element types of the arrays that hold the codes, by the language's names of the formats."""

Arrays = Mapping[str, NDArray[Any]]
Outputs = dict[str, NDArray[Any]]


class Launcher:
    """Launches kernels, one at a time; its process is started anew when it has ended."""

    def __init__(self, environment: Environment, limit_s: float = LAUNCH_LIMIT_S) -> None:
        self._environment, self._limit_s = environment, limit_s
        self._server: Server | None = None
        self._lock = Lock()

    def launch(self, task: Task, text: str, arrays: Arrays) -> Outputs:
        """Launch a kernel.

        Args:
            task: what it looks like from outside.
            text: of the kernel, as the compiler reads it; it passed this target's rules.
            arrays: the codes of every parameter, by name.

        Returns:
            The codes of its results, and of the parameters that it may write, by name.

        Raises:
            StoppedError: it failed, crashed, took too long or answered nonsense.
            TargetError: no process starts here.
            ValueError: an array has another format or shape than the task's.
        """
        passed = [_passed(task, parameter, arrays[parameter.name]) for parameter in task.parameters]
        back = [i for i, parameter in enumerate(task.parameters) if parameter.mutable]
        made = [*task.results, *(task.parameters[i] for i in back)]
        ticket = secrets.token_hex(16)  # so that no earlier kernel can answer for this one
        listed = _listed(task, task.parameters)
        about = {
            "ticket": ticket,
            "kernel": task.name,
            "text": text,
            "arrays": listed,
            "back": back,
        }

        def answer(server: Server) -> Outputs:
            with server.within(self._limit_s):
                server.send(about, passed)
                server.expect({"ticket": ticket, "arrays": _listed(task, made)})
                return {p.name: server.array(STORAGE[p.dtype], _shape(task, p)) for p in made}

        with self._lock:
            return self._answered(answer)

    def _answered(self, answer: Callable[[Server], Outputs]) -> Outputs:
        """Ask a process; where one fails that has served others, a new one decides."""
        if self._server and self._server.is_alive():
            with suppress(StoppedError):
                return answer(self._server)
        if self._server:
            self._server.end()
        self._server = Server(self._environment)
        return answer(self._server)


def _passed(task: Task, parameter: Parameter, array: NDArray[Any]) -> NDArray[Any]:
    """Return an argument that is what the task says: the runtime would reinterpret its bytes."""
    wanted = (STORAGE[parameter.dtype], _shape(task, parameter))
    if (array.dtype, array.shape) != wanted:
        raise ValueError(f"{parameter.name} is {array.dtype}{array.shape}, not {wanted}")
    return np.ascontiguousarray(array)


def _shape(task: Task, parameter: Parameter) -> tuple[int, ...]:
    return tuple(task.bindings[axis] for axis in parameter.axes)


def _listed(task: Task, parameters: tuple[Parameter, ...] | list[Parameter]) -> list[list[Any]]:
    return [[parameter.dtype, list(_shape(task, parameter))] for parameter in parameters]
