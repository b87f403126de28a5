"""Compiled NPU programs for tests: the three kernels, and small ones that declare what they use."""

import re
from pathlib import Path
from typing import Literal, cast

from sim.npu.compiler import compile_source
from sim.npu.kernels import SIGNATURES
from sim.npu.program import DType, Part, Program
from sim.npu.signature import Argument, Signature
from sim.npu.toolchain import V1_0, Toolchain

Version = Literal["baseline", "expert", "bound"]
ROOT = Path(__file__).parents[2]
DATASHEET_CYCLES = {
    "sliding_project_qkv": 41_943,
    "sliding_attention_output": 20_972,
    "decoder_feedforward": 132_710,
}
"""Device cycles in which HBM delivers the weights at its rated 1.5 TB/s."""


def kernel_source(kernel: str, version: Version) -> str:
    """Return the source of one of the three kernels."""
    folder = ROOT / ("tests/data/npu" if version == "expert" else "targets/sim/kernels")
    return (folder / f"{kernel}_{version}.npu").read_text()


def legal(kernel: str, source: str, toolchain: Toolchain = V1_0) -> Program | None:
    """Return the program, or None if the compiler refuses it."""
    program = compile_source(kernel, source, SIGNATURES[kernel], toolchain)
    return program if isinstance(program, Program) else None


def kernel_program(kernel: str, version: Version, toolchain: Toolchain = V1_0) -> Program:
    """Return one of the three kernels, compiled."""
    signature = SIGNATURES[kernel]
    if version == "bound":
        signature = signature.load_only()
    program = compile_source(kernel, kernel_source(kernel, version), signature, toolchain)
    assert isinstance(program, Program), program
    return program


def small_program(source: str, toolchain: Toolchain = V1_0) -> Program:
    """Compile statements and declarations; what they declare is the signature."""
    sizes = {name: int(n) for name, n in re.findall(r"axis (\w+) = (\d+)", source)}
    for name, parent in re.findall(r"axis (\w+) = ([A-Z]\w*) / 16", source):
        sizes[name] = sizes[parent] // 16
    arguments = tuple(
        Argument(
            name,
            cast(DType, dtype),
            tuple(sizes[a.strip()] for a in axes.split(",")),
            cast(Part, part),
        )
        for name, dtype, axes, part in re.findall(r"hbm (\w+): (\w+)\[(.*?)\] (\w+)", source)
        if part != "scratch"
    )
    text = f"kernel small\n{source}"
    program = compile_source("small", text, Signature("small", arguments, ()), toolchain)
    assert isinstance(program, Program), program
    return program
