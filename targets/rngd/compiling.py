"""The whole way to a program of the chip, for a kernel that a search has settled on."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from targets.protocol import BuildFailed, Built, TargetError
from targets.rngd.environment import Environment
from targets.rngd.evaluating import CHIP, failure
from targets.sandbox.confined import Limits, Reads, left_in, run
from targets.sandbox.runner import cache

LIMITS: Final = Limits(
    wall_s=3600.0, cpu_s=3600, space_bytes=16 << 30, file_bytes=1 << 30, processes=4096
)
"""A contraction takes minutes: 357 s of processor time were seen for one of the small kernels."""
ASSEMBLER: Final = "aarch64-linux-gnu-gcc"
_MISSING: Final = (
    "the last stage of the compiler needs an AArch64 cross assembler: "
    "`apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross` (Debian, Ubuntu)"
)


def compile_fully(environment: Environment, text: str) -> Built | BuildFailed:
    """Compile a kernel's text to the program that the chip runs; what was compiled once is kept.

    Raises:
        TargetError: there is no cross assembler, or this machine cannot confine.
    """
    if shutil.which(ASSEMBLER) is None:
        raise TargetError(_MISSING)
    kept = cache() / f"rngd-{environment.version}"
    kept.mkdir(exist_ok=True)
    reads = environment.for_compiler()
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        folder = Path(name)
        (folder / "kernel.tc").write_text(text, encoding="utf-8")
        command = (str(environment.tcc), "--target-npu", CHIP, "--cache-root", str(kept))
        printed = run(
            (*command, "--output", "kernel.edf", "kernel.tc"),
            folder,
            LIMITS,
            Reads((*reads.roots, "/usr", "/bin")),
            writes=(str(kept),),
        )
        program = left_in(folder / "kernel.edf", LIMITS.file_bytes)
    if printed.status != 0 or program is None:
        return failure("compile", printed).refusal("")
    return Built(program, printed.err)
