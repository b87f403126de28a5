"""What a kernel costs, by the vendor's compiler: a static schedule, and nothing that ran."""

import re
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from targets.rngd.advice import advice
from targets.rngd.diagnostics import Diagnostic, Stage
from targets.rngd.environment import Environment
from targets.sandbox.confined import ALONE, Limits, Printed, Reads, left_in, run

CHIP: Final = "renegade-8pe"
N_PES: Final = 8
BYTES_PER_CYCLE: Final = 170
"""That one processing element moves between DRAM and SRAM, in the evaluator's model."""
SETUP_CYCLES: Final = 300
"""Of one transfer, in the evaluator's model."""
LIMITS: Final = Limits(
    wall_s=240.0, cpu_s=60, space_bytes=2 << 30, file_bytes=64 << 20, processes=ALONE
)
PANICKED: Final = 101
"""Exit status of the compiler where it fails itself."""
_NO_MEMORY: Final = ("memory allocation of", "bad_alloc", "failed to spawn thread")
_SHOWN: Final = 800
_PREFIX: Final = re.compile(r"^.*failed to evaluate TCL: ", re.DOTALL)
_PARSED: Final = re.compile(r"^>>> *\d+ \|(.*)$", re.MULTILINE)
_STATEMENT: Final = re.compile(r"stmt: *\n([^\n]*?)(?:(?<=\)): [^\n]*)?$", re.MULTILINE)
_REASONS: Final = (
    re.compile(r"\btotal bytes: \d+: (.*)\Z", re.DOTALL),
    re.compile(r".*\): (.*)\Z", re.DOTALL),
)
"""After the dump of the last tensor, or the end of the statement."""


@dataclass(frozen=True)
class Evaluation:
    """A kernel's static schedule."""

    cycles: int
    """Of the chip's nominal clock, 1 GHz."""
    schedule: bytes
    """JSON, as the compiler dumps it."""


def evaluate(environment: Environment, text: str) -> Evaluation | Diagnostic:
    """Schedule a kernel for eight processing elements; confined, since the text is hostile.

    Raises:
        TargetError: this machine cannot confine.
    """
    return _evaluated(environment.tcc, environment.for_compiler(), text)


@lru_cache(maxsize=16)
def _evaluated(tcc: Path, reads: Reads, text: str) -> Evaluation | Diagnostic:
    """Schedule once: a build, its cost and a device job all ask."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        folder = Path(name)
        (folder / "kernel.tc").write_text(text, encoding="utf-8")
        command = (str(tcc), "--target-npu", CHIP, "--evaluate-tcl", "--tcl-plot", "plot.json")
        printed = run((*command, "kernel.tc"), folder, LIMITS, reads)
        schedule = left_in(folder / "plot.json", LIMITS.file_bytes)
    if printed.status != 0:
        return failure("evaluate", printed)
    answer = (printed.out.split() or [""])[-1]
    if not answer.isdecimal() or schedule is None:
        return Diagnostic("evaluate", "no cost", "the evaluator gave no number of cycles")
    if int(answer) == 0:
        reason = "the evaluator answered 0 cycles, as it does for sizes that it does not know"
        return Diagnostic("evaluate", "no cost", reason)
    return Evaluation(int(answer), schedule)


def failure(stage: Stage, printed: Printed) -> Diagnostic:
    """Say why the compiler did not come to its end."""
    if printed.status is None or printed.status == -9:
        return Diagnostic(stage, "time", "the compiler ran past its limit of time")
    if any(words in printed.err for words in _NO_MEMORY):
        return Diagnostic(stage, "memory", "the compiler ran past its limit of memory")
    if printed.status == PANICKED:
        return Diagnostic(stage, "panic", _panic(printed.err))
    if printed.status < 0:
        return Diagnostic(stage, "killed", f"by signal {-printed.status}")
    return _refused(stage, printed.err)


def _refused(stage: Stage, err: str) -> Diagnostic:
    """Take a refusal apart: where, a dump of what was looked at, and last the reason."""
    text = _PREFIX.sub("", err.strip())
    parsed = _PARSED.search(text)
    reason = next((found for each in _REASONS if (found := each.search(text))), None)
    statement = _STATEMENT.search(text)
    if text.startswith("parse error") and parsed:
        message, snippet = "parse error", parsed[1].strip()
    else:
        message = reason[1] if reason else text
        snippet = statement[1].strip() if statement else ""
    told = message if message == text else f"{message}\nin: {snippet}"
    return Diagnostic(stage, "refused", told[:_SHOWN], snippet=snippet, hint=advice(message))


def _panic(err: str) -> str:
    """Return what a panic says of itself, without the place in the compiler."""
    found = re.search(r"panicked at [^\n]*\n([^\n]+)", err)
    return found[1][:_SHOWN] if found else "the compiler failed"


def least_cycles(weight_bytes: int) -> int:
    """Return the cycles that moving so many bytes takes in the evaluator's own model, at least.

    Source: schedules of seven sizes from 0.5 to 126 MB fit ``SETUP_CYCLES + bytes /
    (BYTES_PER_CYCLE * N_PES)`` to rounding.
    """
    return -(-weight_bytes // (BYTES_PER_CYCLE * N_PES))
