"""Values already computed, so that candidates which differ only in cost share all of them."""

import hashlib
import weakref
from collections import OrderedDict
from typing import Final

import numpy as np

from sim.npu.dtypes import Array, Floats

MAX_BYTES: Final = 64_000_000


def digest(*parts: object) -> str:
    """Return the key of a value: the hash of everything that it depends on.

    Args:
        parts: numbers, strings and tuples of them, which print what they are.
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Memo:
    """Computed values by key; the least recently used go first. Weights are never among them."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, Floats] = OrderedDict()
        self._n_bytes = 0
        self._prints: dict[int, tuple[weakref.ref[Array], str]] = {}

    def __len__(self) -> int:
        """Return how many values it holds."""
        return len(self._values)

    @property
    def n_bytes(self) -> int:
        """Size of all values."""
        return self._n_bytes

    def get(self, key: str) -> Floats | None:
        """Return a value, or None if it is not known."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: str, value: Floats) -> None:
        """Keep a value that `get` does not know; nobody may write to it from now on."""
        self._values[key] = value
        self._n_bytes += value.nbytes
        while self._n_bytes > self._max_bytes:
            self._n_bytes -= self._values.popitem(last=False)[1].nbytes

    def fingerprint(self, array: Array) -> str:
        """Return the hash of an array's bytes; of a read-only array it is computed once."""
        known, print_ = self._prints.get(id(array), (None, ""))
        if known is None or known() is not array or array.flags.writeable:
            print_ = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
            self._prints[id(array)] = weakref.ref(array), print_
        return print_
