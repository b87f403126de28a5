"""What changed between two sources, line by line."""

import difflib
from dataclasses import dataclass
from typing import Literal

CONTEXT_LINES = 3


@dataclass(frozen=True)
class DiffLine:
    """One line of a unified diff."""

    kind: Literal["added", "removed", "same", "place"]
    text: str
    """With its sign."""


def diff(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare two sources; equal ones have no lines."""
    lines = difflib.unified_diff(_lines(before), _lines(after), n=CONTEXT_LINES, lineterm="")
    return tuple(DiffLine(_kind(line), line) for i, line in enumerate(lines) if i >= 2)


def _lines(source: str) -> list[str]:
    """Split at line feeds alone, so that no other character can hide a line."""
    return source.removesuffix("\n").split("\n")


def _kind(line: str) -> Literal["added", "removed", "same", "place"]:
    match line[:1]:
        case "+":
            return "added"
        case "-":
            return "removed"
        case "@":
            return "place"
        case _:
            return "same"
