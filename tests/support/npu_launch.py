"""Small NPU programs: compiled without a signature of their own, and launched on values."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sim.npu.compiler import compile_source
from sim.npu.interpret import Hang, meaning, run
from sim.npu.memo import Launch, Memo
from sim.npu.parse import parse
from sim.npu.program import DType, Part, Program
from sim.npu.signature import Argument, Signature
from sim.npu.syntax import AxisDecl, HbmDecl, KernelText
from sim.npu.toolchain import V1_1

Array = NDArray[Any]


def compiled(source: str) -> Program:
    """Compile a source by the signature that its own declarations make."""
    program = compile_source("test", source, _signature(source), V1_1)
    assert isinstance(program, Program), program
    return program


def _signature(source: str) -> Signature:
    kernel = parse("test", source)
    assert isinstance(kernel, KernelText), kernel
    sizes: dict[str, int] = {}
    arguments = []
    for item in kernel.items:
        if isinstance(item, AxisDecl):
            size = item.size.value
            sizes[item.name.text] = sizes[item.parent.text] // size if item.parent else size
        elif isinstance(item, HbmDecl) and item.part.text != "scratch":
            shape = tuple(sizes[axis.text] for axis in item.axes)
            dtype, part = cast(DType, item.dtype.text), cast(Part, item.part.text)
            arguments.append(Argument(item.name.text, dtype, shape, part))
    return Signature(kernel.name.text, tuple(arguments), ())


def launched(
    source: str, inputs: Mapping[str, Array], *, seed: int = 0, memo: Memo | None = None
) -> dict[str, Array]:
    """Return the outputs of a program, f32 or bf16 decoded, as float32."""
    outputs = run(meaning(compiled(source)), Launch(inputs, seed), memo or Memo())
    assert not isinstance(outputs, Hang), outputs
    return {name: decoded(codes) for name, codes in outputs.items()}


def decoded(codes: Array) -> Array:
    """Return the values of bf16 codes, or f32 values as they are."""
    if codes.dtype == np.uint16:
        return (codes.astype(np.uint32) << 16).view(np.float32)
    return codes


def bf16(values: Any) -> Array:
    """Return codes of values that bf16 holds."""
    exact = np.asarray(values, np.float32)
    codes = (exact.view(np.uint32) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(decoded(codes), exact)
    return codes
