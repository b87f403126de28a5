"""The compiler of hostile source, confined."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from targets.sandbox.compiler import compiler
from targets.sandbox.confined import Limits, Reads, run
from targets.sandbox.runner import zig_cache

LIMITS: Final = Limits(
    wall_s=60.0, cpu_s=60, space_bytes=4 << 30, file_bytes=64 << 20, processes=4096
)


class Compiled(NamedTuple):
    """How a confined compiler ended."""

    status: int | None
    """None: it ran past the time limit."""
    text: str


def run_compiler(arguments: Sequence[str], folder: Path) -> Compiled:
    """Run the compiler confined to the system's files and ``folder``, as working directory.

    Returns:
        Its exit status and the begin of what it printed, without paths of this machine.

    Raises:
        TargetError: the kernel refuses to confine it.
    """
    cc = compiler()
    writes = (str(zig_cache()),) if cc.family == "zig" else ()
    printed = run((*cc.command, *arguments), folder, LIMITS, Reads(cc.roots), writes=writes)
    return Compiled(printed.status, printed.out + printed.err)
