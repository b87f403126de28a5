"""The memory file that a job's inputs lie in, with the reference of every variant."""

import hashlib
import mmap
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from targets.gemma4.fixtures import fixture
from targets.gemma4.formats import bf16_decode
from targets.gemma4.kernels import Buffer, Kernel
from targets.gemma4.reference import expected, margin

LINE: Final = 64
PAGE: Final = mmap.PAGESIZE
_MAX_KNOWN: Final = 256
Inputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Variant:
    """One choice of the inputs that are not weights, and what the kernel makes of them."""

    inputs: Inputs
    """Without the weights: they are large, and comparing outputs does not need them."""
    expected: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Image:
    """All inputs of a job in one memory file; closed with the last reference to it."""

    kernel: Kernel
    label: str
    fd: int
    n_bytes: int
    weight_offsets: tuple[tuple[int, ...], ...]
    """Per copy and buffer; 0 where the buffer is no weight."""
    input_offsets: tuple[tuple[int, ...], ...]
    """Per variant and buffer; 0 where the buffer is no input."""
    variants: tuple[Variant, ...] = field(repr=False)
    _known: dict[tuple[int, bytes], tuple[float | None, str]] = field(default_factory=dict)
    """Margins by variant and hash of the outputs: most artifacts repeat themselves to the bit."""

    def margin(self, variant: int, outputs: bytes) -> tuple[float | None, str]:
        """Compare what a launch on ``variant`` wrote: its margin, and why it fails or "".

        Args:
            variant: number of the inputs.
            outputs: every out and inout buffer, in order, without padding.
        """
        key = (variant, hashlib.sha256(outputs).digest())
        if key not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._compare(variant, outputs)
        return self._known[key]

    def _compare(self, variant: int, outputs: bytes) -> tuple[float | None, str]:
        arrays, at = {}, 0
        for buffer in self.kernel.buffers:
            if buffer.part not in ("out", "inout"):
                continue
            raw = outputs[at : at + buffer.n_bytes]
            arrays[buffer.name] = np.frombuffer(raw, buffer.storage).reshape(buffer.storage_shape)
            at += buffer.n_bytes
        chosen = self.variants[variant]
        worst, detail = margin(self.kernel, chosen.inputs, chosen.expected, arrays)
        if worst is not None and not worst <= 1.0:
            detail = f"differs by {worst:.3g} tolerances{_worst_place(chosen.expected, arrays)}"
        return worst, detail


def image(
    kernel: Kernel, seed: int, index: int, *, n_variants: int, n_stored: int, n_mapped: int
) -> Image:
    """Draw inputs, compute their references, and lay them out for the runner.

    Args:
        kernel: whose buffers.
        seed: of the weights and of variant 0; further variants follow from it.
        index: position in the fixture list.
        n_variants: choices of the inputs that are not weights.
        n_stored: copies of the weights in memory.
        n_mapped: copies of the weights that the runner sees; they take turns on the stored ones.
    """
    first = fixture(kernel, seed, index)
    weights = {b.name: first.inputs[b.name] for b in kernel.weights}
    drawn = [first.inputs] + [
        fixture(kernel, _derived(seed, i), index).inputs for i in range(1, n_variants)
    ]
    variants = tuple(_variant(kernel, weights, inputs) for inputs in drawn)
    fd = os.memfd_create("kernelwright-inputs")
    try:
        sheet = _Sheet(kernel, fd)
        stored = [sheet.write(weights, copy=copy) for copy in range(n_stored)]
        inputs = tuple(sheet.write(variant.inputs) for variant in variants)
    except BaseException:
        os.close(fd)
        raise
    copies = tuple(stored[i % n_stored] for i in range(n_mapped))
    made = Image(kernel, first.label, fd, sheet.end, copies, inputs, variants)
    weakref.finalize(made, os.close, fd)
    return made


def _worst_place(expected: Mapping[str, NDArray[np.float64]], outputs: Inputs) -> str:
    """Name the output element that is farthest from the reference."""
    errors = {name: np.abs(bf16_decode(outputs[name]) - value) for name, value in expected.items()}
    name = max(errors, key=lambda name: float(errors[name].max()))
    index = np.unravel_index(int(errors[name].argmax()), errors[name].shape)
    return f", most at {name}[{', '.join(str(i) for i in index)}]"


def _derived(seed: int, i: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{i}".encode()).digest()[:6])


def _variant(kernel: Kernel, weights: Inputs, drawn: Inputs) -> Variant:
    inputs = {name: value for name, value in drawn.items() if name not in weights}
    return Variant(inputs, expected(kernel, {**inputs, **weights}))


class _Sheet:
    """Appends buffers to a file so that each ends, but for its last cache line, at a page."""

    def __init__(self, kernel: Kernel, fd: int) -> None:
        self._kernel, self._fd, self.end = kernel, fd, 0
        self._known: dict[tuple[int, int], int] = {}

    def write(self, arrays: Inputs, copy: int = 0) -> tuple[int, ...]:
        """Return the offset of every buffer of the kernel; equal arrays are stored once a copy."""
        return tuple(
            self._write(buffer, arrays[buffer.name], copy) if buffer.name in arrays else 0
            for buffer in self._kernel.buffers
        )

    def _write(self, buffer: Buffer, array: NDArray[Any], copy: int) -> int:
        key = (id(array), copy)
        if key not in self._known:
            self._known[key] = self.end
            region = -(-buffer.n_bytes // PAGE) * PAGE
            start = self.end + region - -(-buffer.n_bytes // LINE) * LINE
            _write_all(self._fd, np.ascontiguousarray(array).data.cast("B"), start)
            self.end += region
            os.truncate(self._fd, self.end)
        return self._known[key]


def _write_all(fd: int, data: memoryview, at: int) -> None:
    while data:
        n = os.pwrite(fd, data, at)
        data, at = data[n:], at + n


def n_copies(kernel: Kernel, rotation_bytes: int) -> int:
    """Return how many copies of the weights cover ``rotation_bytes``, at least two."""
    return max(2, -(-rotation_bytes // max(1, kernel.weight_bytes)))


def rotation_bytes(caches: Sequence[int]) -> int:
    """Return the footprint that no cache holds: three times the largest, at least 96 MB."""
    return max(96_000_000, 3 * max(caches, default=0))
