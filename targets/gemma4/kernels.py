"""The three decode kernels of Gemma-4-12B: their sizes, buffers and tolerances."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final, Literal

import numpy as np

from targets.protocol import TargetError

DType = Literal["bf16", "f8e4m3", "f4e2m1", "e8m0", "f32", "i64"]
Part = Literal["in", "weight", "inout", "out", "scratch"]

EPS: Final = 1e-6
"""Added to the mean square in every RMS norm."""
F4_BLOCK: Final = 16
"""Consecutive f4 weights of one row that share an f8 scale (NVFP4)."""
MX_BLOCK: Final = 32
"""Consecutive f4 weights of one row that share an e8m0 scale (MXFP4)."""

_STORAGE: Final[Mapping[DType, np.dtype[Any]]] = {
    "bf16": np.dtype(np.uint16),
    "f8e4m3": np.dtype(np.uint8),
    "f4e2m1": np.dtype(np.uint8),
    "e8m0": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
}


@dataclass(frozen=True)
class Buffer:
    """One argument of a kernel."""

    name: str
    """Name of the argument."""
    dtype: DType
    shape: tuple[int, ...]
    """In elements, whatever the format packs."""
    part: Part

    @property
    def storage(self) -> np.dtype[Any]:
        """Element type of the array that holds the codes."""
        return _STORAGE[self.dtype]

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """Shape of the array that holds the codes; f4e2m1 halves the last axis."""
        if self.dtype != "f4e2m1":
            return self.shape
        return (*self.shape[:-1], self.shape[-1] // 2)

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return prod(self.storage_shape) * self.storage.itemsize


@dataclass(frozen=True)
class Kernel:
    """One kernel at one size."""

    name: str
    preset: str
    dims: Mapping[str, int] = field(hash=False)
    """Sizes by name."""
    buffers: tuple[Buffer, ...]
    """In the order of the arguments."""
    atol: float
    rtol: float

    @property
    def weights(self) -> tuple[Buffer, ...]:
        """Weights and block scales, which every launch must read."""
        return tuple(b for b in self.buffers if b.part == "weight")

    @property
    def weight_bytes(self) -> int:
        """Bytes of `weights`."""
        return sum(b.n_bytes for b in self.weights)

    def buffer(self, name: str) -> Buffer:
        """Return the argument of this name."""
        return next(b for b in self.buffers if b.name == name)


KERNELS: Final = ("sliding_project_qkv", "sliding_attention_output", "decoder_feedforward")
"""Those that every target has."""
MXFP4_KERNELS: Final = ("sliding_project_qkv_mxfp4", "sliding_attention_output_mxfp4")
"""The same mathematics as the kernels they are named after, on MXFP4 weights without row scales."""
PRESETS: Final = ("full", "small")

_ATOL: Final[Mapping[str, float]] = {
    "sliding_project_qkv": 0.04,
    "sliding_attention_output": 0.05,
    "decoder_feedforward": 0.01,
    "sliding_project_qkv_mxfp4": 0.04,
    "sliding_attention_output_mxfp4": 0.05,
}
_RTOL: Final = 0.01


def _dims(h: int, l: int, ns: int, ts: int, e: int) -> Mapping[str, int]:  # noqa: E741
    gs, ds = 2, 256
    ps = ns * ds
    return {"H": h, "L": l, "NS": ns, "GS": gs, "DS": ds, "QS": gs * ps, "PS": ps, "TS": ts, "E": e}


_DIMS: Final[Mapping[str, Mapping[str, int]]] = {
    "full": _dims(h=3840, l=15360, ns=8, ts=1024, e=32768),
    "small": _dims(h=1024, l=4096, ns=4, ts=64, e=1024),
}


def kernel(name: str, preset: str) -> Kernel:
    """Return a kernel at a preset size.

    Raises:
        TargetError: no such kernel or preset; the text lists the known ones.
    """
    if preset not in _DIMS:
        raise TargetError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
    return sized(name, preset, _DIMS[preset])


def sized(name: str, preset: str, dims: Mapping[str, int]) -> Kernel:
    """Return a kernel at sizes of one's own; ``dims`` has the keys of the presets.

    Raises:
        TargetError: no such kernel; the text lists the known ones.
    """
    if name not in _BUFFERS:
        raise TargetError(f"unknown kernel {name!r}; use one of {', '.join(_BUFFERS)}")
    n_scratch = 4 * (dims["H"] + dims["L"] + dims["QS"] + 2 * dims["PS"])
    scratch = Buffer("scratch", "f32", (n_scratch,), "scratch")
    buffers = (*_BUFFERS[name](dims), scratch)
    return Kernel(name, preset, dims, buffers, _ATOL[name], _RTOL)


def _project_qkv(d: Mapping[str, int]) -> tuple[Buffer, ...]:
    return (
        Buffer("x", "bf16", (d["H"],), "in"),
        Buffer("w_rms", "bf16", (d["H"],), "in"),
        Buffer("wq", "f8e4m3", (d["QS"], d["H"]), "weight"),
        Buffer("wk", "f8e4m3", (d["PS"], d["H"]), "weight"),
        Buffer("wv", "f8e4m3", (d["PS"], d["H"]), "weight"),
        Buffer("sq", "bf16", (d["QS"],), "in"),
        Buffer("sk", "bf16", (d["PS"],), "in"),
        Buffer("sv", "bf16", (d["PS"],), "in"),
        Buffer("q_rms", "bf16", (d["DS"],), "in"),
        Buffer("k_rms", "bf16", (d["DS"],), "in"),
        Buffer("cos", "bf16", (d["E"], d["DS"]), "in"),
        Buffer("sin", "bf16", (d["E"], d["DS"]), "in"),
        Buffer("offsets", "i64", (2,), "in"),
        Buffer("q_out", "bf16", (d["QS"],), "out"),
        Buffer("k_cache", "bf16", (d["TS"], d["PS"]), "inout"),
        Buffer("v_cache", "bf16", (d["TS"], d["PS"]), "inout"),
    )


def _attention_output(d: Mapping[str, int]) -> tuple[Buffer, ...]:
    return (
        Buffer("x", "bf16", (d["QS"],), "in"),
        Buffer("wo", "f8e4m3", (d["H"], d["QS"]), "weight"),
        Buffer("so", "bf16", (d["H"],), "in"),
        Buffer("w_post", "bf16", (d["H"],), "in"),
        Buffer("residual", "bf16", (d["H"],), "inout"),
    )


def _feedforward(d: Mapping[str, int]) -> tuple[Buffer, ...]:
    return (
        Buffer("residual", "bf16", (d["H"],), "inout"),
        Buffer("w_pre", "bf16", (d["H"],), "in"),
        Buffer("w_post", "bf16", (d["H"],), "in"),
        Buffer("w_up", "f4e2m1", (d["L"], d["H"]), "weight"),
        Buffer("w_gate", "f4e2m1", (d["L"], d["H"]), "weight"),
        Buffer("w_down", "f4e2m1", (d["H"], d["L"]), "weight"),
        Buffer("s_up", "f8e4m3", (d["L"], d["H"] // F4_BLOCK), "weight"),
        Buffer("s_gate", "f8e4m3", (d["L"], d["H"] // F4_BLOCK), "weight"),
        Buffer("s_down", "f8e4m3", (d["H"], d["L"] // F4_BLOCK), "weight"),
        Buffer("globals", "f32", (3,), "in"),
        Buffer("layer_scalar", "bf16", (1,), "in"),
    )


def _mxfp4(buffers: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Turn f8 weights with row scales into f4 weights with e8m0 scales of blocks."""
    columns = {f"s{b.name[1:]}": b.shape[1] for b in buffers if b.dtype == "f8e4m3"}

    def turned(b: Buffer) -> Buffer:
        if b.dtype == "f8e4m3":
            return replace(b, dtype="f4e2m1")
        if b.name in columns:
            return Buffer(b.name, "e8m0", (*b.shape, columns[b.name] // MX_BLOCK), "weight")
        return b

    return tuple(turned(b) for b in buffers)


_BUFFERS: Final[Mapping[str, Callable[[Mapping[str, int]], tuple[Buffer, ...]]]] = {
    "sliding_project_qkv": _project_qkv,
    "sliding_attention_output": _attention_output,
    "decoder_feedforward": _feedforward,
    "sliding_project_qkv_mxfp4": lambda dims: _mxfp4(_project_qkv(dims)),
    "sliding_attention_output_mxfp4": lambda dims: _mxfp4(_attention_output(dims)),
}
