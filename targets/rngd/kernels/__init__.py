"""The kernels of this target, all at full size: their outside, and the target's own sources.

Weights in four bits are passed packed, two to a byte, and MXFP4 scales as bytes: the functional
runtime knows neither format.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal

from targets.gemma4.kernels import F4_BLOCK, KERNELS, MX_BLOCK, MXFP4_KERNELS, Kernel, kernel
from targets.rngd.task import Parameter, Task


def _tensor(name: str, dtype: str, *axes: str, mutable: bool = False) -> Parameter:
    return Parameter(name, dtype, axes, mutable)


def _project_qkv(*weights: Parameter) -> tuple[Parameter, ...]:
    return (
        _tensor("x", "bf16", "H"),
        _tensor("w_rms", "bf16", "H"),
        *weights,
        _tensor("q_rms", "bf16", "DS"),
        _tensor("k_rms", "bf16", "DS"),
        _tensor("cos", "bf16", "E", "DS"),
        _tensor("sin", "bf16", "E", "DS"),
        _tensor("rope_row", "i32", "N"),
        _tensor("cache_row", "i32", "N"),
        _tensor("k_cache", "bf16", "TS", "PS", mutable=True),
        _tensor("v_cache", "bf16", "TS", "PS", mutable=True),
    )


def _attention_output(*weights: Parameter) -> tuple[Parameter, ...]:
    return (
        _tensor("x", "bf16", "QS"),
        *weights,
        _tensor("w_post", "bf16", "H"),
        _tensor("residual", "bf16", "H"),
    )


_PARAMETERS: Final[Mapping[str, tuple[Parameter, ...]]] = {
    "sliding_project_qkv": _project_qkv(
        _tensor("wq", "f8_e4", "QS", "H"),
        _tensor("wk", "f8_e4", "PS", "H"),
        _tensor("wv", "f8_e4", "PS", "H"),
        _tensor("sq", "bf16", "QS"),
        _tensor("sk", "bf16", "PS"),
        _tensor("sv", "bf16", "PS"),
    ),
    "sliding_attention_output": _attention_output(
        _tensor("wo", "f8_e4", "H", "QS"),
        _tensor("so", "bf16", "H"),
    ),
    "decoder_feedforward": (
        _tensor("residual", "bf16", "H"),
        _tensor("w_pre", "bf16", "H"),
        _tensor("w_post", "bf16", "H"),
        _tensor("w_up", "u8", "L", "HP"),
        _tensor("w_gate", "u8", "L", "HP"),
        _tensor("w_down", "u8", "H", "LP"),
        _tensor("s_up", "f8_e4", "L", "HB"),
        _tensor("s_gate", "f8_e4", "L", "HB"),
        _tensor("s_down", "f8_e4", "H", "LB"),
        _tensor("globals", "f32", "G"),
        _tensor("layer_scalar", "bf16", "N"),
    ),
    "sliding_project_qkv_mxfp4": _project_qkv(
        _tensor("wq", "u8", "QS", "HP"),
        _tensor("wk", "u8", "PS", "HP"),
        _tensor("wv", "u8", "PS", "HP"),
        _tensor("sq", "u8", "QS", "HB"),
        _tensor("sk", "u8", "PS", "HB"),
        _tensor("sv", "u8", "PS", "HB"),
    ),
    "sliding_attention_output_mxfp4": _attention_output(
        _tensor("wo", "u8", "H", "QP"),
        _tensor("so", "u8", "H", "QB"),
    ),
}
_RESULTS: Final[Mapping[str, Parameter]] = {
    "sliding_project_qkv": _tensor("q_out", "bf16", "QS"),
    "sliding_attention_output": _tensor("residual", "bf16", "H"),
    "decoder_feedforward": _tensor("residual", "bf16", "H"),
    "sliding_project_qkv_mxfp4": _tensor("q_out", "bf16", "QS"),
    "sliding_attention_output_mxfp4": _tensor("residual", "bf16", "H"),
}
"""Named after the buffers of `targets.gemma4` that they are."""


def _sizes(facts: Kernel) -> dict[str, int]:
    """Return the elements of every axis: P of packed bytes, B of blocks with a scale, N one."""
    block = MX_BLOCK if facts.name in MXFP4_KERNELS else F4_BLOCK
    rows = {"H": facts.dims["H"], "L": facts.dims["L"], "Q": facts.dims["QS"]}
    packed = {f"{name}P": size // 2 for name, size in rows.items()}
    blocks = {f"{name}B": size // block for name, size in rows.items()}
    return {**facts.dims, **packed, **blocks, "G": 3, "N": 1}


def _task(name: str) -> Task:
    facts = kernel(name, "full")
    parameters, result = _PARAMETERS[name], _RESULTS[name]
    sizes = _sizes(facts)
    bindings = {axis: sizes[axis] for each in (*parameters, result) for axis in each.axes}
    return Task(name, bindings, parameters, (result,), facts.weight_bytes)


TASKS: Final[Mapping[str, Task]] = {name: _task(name) for name in (*KERNELS, *MXFP4_KERNELS)}
"""By name of the kernel."""


def text(folder: Literal["baselines", "loads"], name: str) -> str:
    """Return one of the target's own sources.

    Args:
        folder: the kernel as an engineer new to the chip writes it, in loops over tiles of weights;
            or one that loads what every launch must load, and computes next to nothing.
        name: of the kernel.
    """
    return files("targets.rngd.kernels").joinpath(folder, f"{name}.py").read_text(encoding="utf-8")
