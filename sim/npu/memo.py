"""Values as nodes of a graph, computed when needed and once.

A node's key says how its value comes about: operations, roundings and inputs, but neither placement
nor tiles, buffers, lanes or order. So candidates that differ only in cost share all values.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sim.npu.dtypes import Array
from sim.npu.program import DType

MAX_BYTES: Final = 64_000_000


def digest(*parts: object) -> str:
    """Return the hash of parts whose text is all that they are: numbers, strings, tuples."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Launch:
    """What a program is run on."""

    arguments: Mapping[str, Array]
    """Codes of every in, weight and inout tensor, f4 packed; sizes must fit, shapes need not."""
    seed: int
    """Of whatever the chip leaves undefined."""


@dataclass(frozen=True, eq=False)
class Node:
    """A whole tensor that need not be computed yet."""

    key: str
    """Equal keys, equal values in any one launch."""
    dtype: DType
    """The narrowest format known to hold it."""
    compute: Callable[..., Any]
    """Takes the launch and the values of `inputs`."""
    inputs: tuple["Node", ...] = ()


class Memo:
    """Values of one launch; the least recently used go first. Weights are never among them."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, Array] = OrderedDict()
        self.n_bytes = 0
        """Of all values kept."""
        self.n_computed = 0
        """Values computed so far, arguments aside."""

    def value(self, node: Node, launch: Launch) -> Any:
        """Return a node's value; all calls are about the same launch, and nobody writes to it."""
        known: dict[str, Any] = {}
        stack = [node]
        while stack:
            top = stack[-1]
            if top.key not in known and (value := self._find(top.key)) is not None:
                known[top.key] = value
            missing = [] if top.key in known else [i for i in top.inputs if i.key not in known]
            stack += missing
            if missing:
                continue
            stack.pop()
            if top.key not in known:
                known[top.key] = top.compute(launch, *(known[i.key] for i in top.inputs))
                self._keep(top, known[top.key])
        return known[node.key]

    def _find(self, key: str) -> Array | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def _keep(self, node: Node, value: Any) -> None:
        if not node.inputs or not isinstance(value, np.ndarray):
            return
        self.n_computed += 1
        self._values[node.key] = value
        self.n_bytes += value.nbytes
        while self.n_bytes > self._max_bytes:
            self.n_bytes -= self._values.popitem(last=False)[1].nbytes
