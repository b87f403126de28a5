"""The front end of the NPU's compiler."""

from sim.npu.check.program import check
from sim.npu.diagnostics import Diagnostic, IllegalError
from sim.npu.parse import parse
from sim.npu.printing import normalize
from sim.npu.program import Position, Program
from sim.npu.signature import Signature
from sim.npu.syntax import Span
from sim.npu.toolchain import Toolchain


def compile_source(
    name: str, source: str, signature: Signature, toolchain: Toolchain
) -> Program | Diagnostic:
    """Turn any text into a checked program, or say what is wrong with it.

    Args:
        name: of the file, for the diagnostic.
        source: the text; it may be hostile.
        signature: of the kernel that it is to be.
        toolchain: whose rules hold.
    """
    kernel = parse(name, source)
    if isinstance(kernel, Diagnostic):
        return kernel
    try:
        return check(kernel, signature, toolchain)
    except IllegalError as e:
        return _diagnostic(name, source, e)


def _diagnostic(name: str, source: str, error: IllegalError) -> Diagnostic:
    at: Span = error.certain or error.at
    return Diagnostic(
        name,
        Position(error.at.line, error.at.column),
        error.code,
        error.message,
        normalize(source[at.start : at.end]),
        certain=error.certain is not None,
    )
