"""A try of the compiler."""

from sim.npu.check.program import check
from sim.npu.diagnostics import IllegalError
from sim.npu.kernels import SIGNATURES
from sim.npu.schedule import Schedule, schedule
from sim.npu.syntax import KernelText
from sim.npu.toolchain import Toolchain


def attempt(kernel: KernelText, toolchain: Toolchain) -> Schedule | None:
    """Compile a kernel; None if the compiler refuses it."""
    try:
        program = check(kernel, SIGNATURES[kernel.name.text], toolchain)
    except IllegalError:
        return None
    return schedule(program, toolchain)
