"""How a job ended, and the lines of its log that say so.

A run's lines stand between two marks that the job's own script prints. A reading counts only if the
whole of its run is there: nothing is told of a run from part of its data.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Final, Literal, NamedTuple

Ending = Literal["fail", "no-cycles", "hung", "rejected", "quota", "lost", "cancelled"]
"""All but "pass", which is a `Reading` of every run."""
MARK: Final = "kernelwright-run"
"""Begin of the lines that the job's script prints before the first run and after each."""
_VERDICT: Final = re.compile(
    r"\[(?P<kernel>\S+) (?P<label>[^\]\n]*)\] max\|(?:D|Δ)\|=(?P<error>\S+) within tol=\S+ -> "
    r"(?P<word>PASS|FAIL)"
)
_CYCLES: Final = re.compile(r"\bcycles=(?P<n>\d+\b|none observed|\S*)")
_HUNG: Final = re.compile(r"Execution: Timeout|timed out", re.IGNORECASE)


@dataclass(frozen=True)
class Failed:
    """A job, or a run, without readings."""

    ending: Ending
    detail: str
    run: int | None = None
    """Number of the run that is to blame, None if the job is."""
    log: str = ""
    """What the job had printed, where that is known and not yet read."""

    def __str__(self) -> str:
        return f"{self.ending}: {self.detail}"


class Reading(NamedTuple):
    """What one run says."""

    cycles: tuple[int, ...]
    """Of the device's counter, by launch."""
    error: float
    """Greatest absolute error of its outputs."""


class Part(NamedTuple):
    """One run's part of a job's log."""

    text: str
    status: int
    """Its program's exit status."""


def worst_error(part: Part, kernel: str, label: str) -> float | Failed:
    """Return the greatest absolute error that the verdicts of a run show, if all are passes.

    Args:
        part: what the run printed.
        kernel: that ran.
        label: that the run was told to print: one that prints another ran on other inputs.
    """
    found = [v for v in _VERDICT.finditer(part.text) if v["kernel"].rpartition("::")[2] == kernel]
    errors = [_number(v["error"]) for v in found]
    if not all(isfinite(error) for error in errors):
        return Failed("fail", f"outputs of {kernel} are not finite")
    if any(v["word"] == "FAIL" for v in found):
        return Failed("fail", f"outputs of {kernel} are off by up to {max(errors):g}")
    if _HUNG.search(part.text):
        return Failed("hung", f"{kernel} did not come back from the device")
    if part.status != 0:
        return Failed("fail", f"the test of {kernel} ended with exit status {part.status}")
    if not found or any(v["label"] != label for v in found):
        return Failed(
            "lost", f"not every verdict on {kernel} is labelled {label}, or there is none"
        )
    return max(errors)


def reading(part: Part, kernel: str, label: str, launches: int) -> Reading | Failed:
    """Read a run; ``launches`` is how many counts of cycles there must be."""
    error = worst_error(part, kernel, label)
    if isinstance(error, Failed):
        return error
    counts = [c["n"] for c in _CYCLES.finditer(part.text)]
    cycles = tuple(int(n) for n in counts if n.isdecimal() and int(n) > 0)
    if len(cycles) != len(counts) or len(cycles) != launches:
        return Failed("no-cycles", f"{len(cycles)} of {launches} launches of {kernel} were counted")
    return Reading(cycles, error)


def parts(log: str, ticket: str, n_runs: int) -> list[Part] | Failed:
    """Cut a whole job's log at the marks that show the job's ticket: one part per run."""
    if not log.strip():
        return Failed("lost", "its log is empty")
    lines = log.splitlines()
    mark = re.compile(rf"{MARK} {re.escape(ticket)} (\d+) (\d+)\s*")
    marks = [(i, m) for i, line in enumerate(lines) if (m := mark.fullmatch(line))]
    if [int(m[1]) for _, m in marks] != list(range(n_runs + 1)):
        over = max(0, len(marks) - 1)
        return Failed("lost", f"its log shows {over} of {n_runs} runs", min(over, n_runs - 1))
    return [
        Part("\n".join(lines[begin + 1 : end]), int(m[2]))
        for (begin, _), (end, m) in pairwise(marks)
    ]


def read_all(
    log: str, ticket: str, kernel: str, labels: Sequence[str], launches: int
) -> list[Reading] | Failed:
    """Read every run of a job, or say why the job gives no readings at all."""
    cut = parts(log, ticket, len(labels))
    if isinstance(cut, Failed):
        return cut
    found = []
    for number, (part, label) in enumerate(zip(cut, labels, strict=True)):
        got = reading(part, kernel, label, launches)
        if isinstance(got, Failed):
            return Failed(got.ending, got.detail, number)
        found.append(got)
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
