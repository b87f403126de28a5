"""From hostile Python to the text that the compiler reads: the only place where it runs."""

import json
import re
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from targets.rngd.advice import advice
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import Environment
from targets.sandbox.confined import ALONE, Limits, Printed, left_in, run

LIMITS: Final = Limits(
    wall_s=120.0, cpu_s=60, space_bytes=2 << 30, file_bytes=16 << 20, processes=ALONE
)
MAX_SOURCE: Final = 256 << 10
MAX_IR: Final = 1 << 20
"""Bytes of a kernel's text: a large one has some ten thousand."""
_SOURCE_NAME: Final = "kernel.py"
_ANSWER: Final = "answer.json"
_VENDORS: Final = re.compile(r"Permission denied: '[^']*/furiosa/kernels\b")


class Traced(NamedTuple):
    """What a source says the kernel is; as hostile as the source."""

    ir: str
    names: tuple[str, ...]
    """That the source chose."""


class Untraced(NamedTuple):
    """A source that gave no text."""

    diagnostic: Diagnostic
    names: tuple[str, ...] = ()


def trace(
    environment: Environment, kernel: str, source: str, *, vendor_kernels: bool = False
) -> Traced | Untraced:
    """Run ``source`` confined, and return the text of the function named ``kernel``.

    Raises:
        TargetError: this machine cannot confine.
    """
    if len(source) > MAX_SOURCE:
        return _failed("too long", f"a source has at most {MAX_SOURCE} characters")
    program = Path(__file__).with_name("tracer.py")
    reads = environment.for_python(vendor_kernels=vendor_kernels)
    reads = reads._replace(roots=(*reads.roots, str(program)))
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        folder = Path(name)
        (folder / _SOURCE_NAME).write_bytes(source.encode("utf-8", "surrogateescape"))
        command = (str(environment.python), "-I", "-B", str(program))
        printed = run(
            (*command, str(folder / _SOURCE_NAME), kernel, str(folder / _ANSWER)),
            folder,
            LIMITS,
            reads,
            variables={"PYTHONHASHSEED": "0"},
        )
        answer = left_in(folder / _ANSWER, 2 * MAX_IR)
    if answer is None or printed.status != 0:
        return _ended(printed)
    return _read(answer.replace(f"{name}/".encode(), b""))


def _ended(printed: Printed) -> Untraced:
    if printed.status is None or printed.status == -9:
        return _failed("limit", "tracing ran past its limits of time or memory")
    return _failed("no trace", f"the source ended its process (status {printed.status})")


def _read(answer: bytes) -> Traced | Untraced:
    """Take an answer that the source may have written itself."""
    try:
        said = json.loads(answer)
        names = tuple(str(name) for name in said["names"])
        if "ir" in said:
            ir = str(said["ir"])
            too_long = _failed("too long", f"a kernel's text has at most {MAX_IR} characters")
            return Traced(ir, names) if len(ir) <= MAX_IR else too_long
        kind, message = (str(part) for part in said["error"])
        line = said["line"] if isinstance(said["line"], int) else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return _failed("no trace", "the source wrote an answer of its own")
    if kind == "MemoryError":
        return _failed("limit", "tracing ran past its limits of time or memory")
    if _VENDORS.search(message):
        kind, message = "hidden", "the vendor's model kernels are not for candidates to read"
    return Untraced(Diagnostic("trace", kind, message, line, hint=advice(message)), names)


def _failed(what: str, message: str) -> Untraced:
    return Untraced(Diagnostic("trace", what, message))
