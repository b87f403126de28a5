"""From hostile source to an artifact: gate, preprocess, gate, compile, gate."""

import tempfile
from pathlib import Path
from typing import Final

from targets.cpu.diagnostics import failure
from targets.cpu.gate import SOURCE_NAME, artifact_fault, preprocessed_fault, source_fault
from targets.cpu.header import header
from targets.cpu.sandbox import LIMITS, Compiled, run_compiler
from targets.cpu.toolchain import LINK_FLAGS, PREPROCESS_FLAGS, flags
from targets.gemma4.kernels import Kernel
from targets.protocol import BuildFailed, Built

MAX_SHOWN: Final = 300
"""Characters of a signature, and of a snippet: half a line of code is no rule."""


def build(kernel: Kernel, source: str) -> Built | BuildFailed:
    """Build hostile source under limits; every refusal is a value.

    Raises:
        TargetError: this machine has no compiler, or cannot confine it.
    """
    built = source_fault(source) or compile_ungated(kernel, source, gate=True)
    return _bounded(built) if isinstance(built, BuildFailed) else built


def compile_ungated(kernel: Kernel, source: str, *, gate: bool = False) -> Built | BuildFailed:
    """Compile ``source``, confined; without ``gate`` the legality rules are not asked."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        folder = Path(name)
        (folder / "kernel.h").write_text(header(kernel), encoding="utf-8")
        (folder / SOURCE_NAME).write_text(source, encoding="utf-8", errors="surrogateescape")
        fixed = flags()
        first = run_compiler((*fixed, *PREPROCESS_FLAGS, SOURCE_NAME, "-o", "kernel.i"), folder)
        if first.status != 0:
            return _failed(first, source)
        text = (folder / "kernel.i").read_text(encoding="utf-8", errors="replace")
        if gate and (fault := preprocessed_fault(text)):
            return fault
        second = run_compiler((*fixed, *LINK_FLAGS, "kernel.i", "-o", "kernel.so"), folder)
        if second.status != 0:
            return _failed(second, source)
        artifact = (folder / "kernel.so").read_bytes()
    if gate and (fault := artifact_fault(artifact)):
        return fault
    return Built(artifact, second.text)


def _bounded(failed: BuildFailed) -> BuildFailed:
    """Shorten what goes into events: a source chooses its names, and the length of its lines."""
    fits = len(failed.snippet) <= MAX_SHOWN
    return BuildFailed(
        failed.diagnostics,
        failed.signature[:MAX_SHOWN],
        failed.snippet if fits else "",
        certain=failed.certain and fits,
    )


def _failed(printed: Compiled, source: str) -> BuildFailed:
    if printed.status is None:
        reason = f"the compiler ran past its time limit of {LIMITS.wall_s:.0f} s"
        return BuildFailed(reason, "compiler: time limit", "")
    if printed.status < 0 and not printed.text:
        reason = f"the compiler was killed by signal {-printed.status}"
        return BuildFailed(reason, "compiler: killed", "")
    return failure(printed.text, source)
