"""What the NPU's compiler says of a source that it refuses."""

from dataclasses import dataclass
from typing import Literal

from sim.npu.program import Position
from sim.npu.syntax import Span

Code = Literal[
    "E-SYNTAX",
    "E-NAME",
    "E-REDEFINED",
    "E-SIGNATURE",
    "E-HBM-SIZE",
    "E-CLUSTERS",
    "E-SLICES-POW2",
    "E-SLICES-SPAN",
    "E-SPLIT-DIVIDES",
    "E-SPLIT-TWICE",
    "E-TILE-DIVIDES",
    "E-TILE-BLOCK",
    "E-LOOP-NESTED",
    "E-LOOP-PARTIAL",
    "E-LOOP-SUM",
    "E-LOOP-HBM",
    "E-BUFFERS",
    "E-COMMANDS",
    "E-DM-ALIGN",
    "E-DM-SIZE",
    "E-VRF-SIZE",
    "E-TRF-SIZE",
    "E-BLOCK-DIVIDES",
    "E-LOAD-LIST",
    "E-DMA-F4",
    "E-STORE-SHAPE",
    "E-INDEX",
    "E-STAGE-ORDER",
    "E-LOOKUP-DTYPE",
    "E-LOOKUP-SUB",
    "E-LOOKUP-TRF",
    "E-FETCH-CAST",
    "E-CONTRACT-DTYPE",
    "E-CONTRACT-AXES",
    "E-CONTRACT-CLUSTER",
    "E-PARTIAL",
    "E-REDUCE-INNER",
    "E-PLACE-MATCH",
    "E-LANES",
    "E-PIECES",
    "E-SCALE-AXES",
    "E-VRF-OPERAND",
    "E-FMA-ADDEND",
    "E-TRF-SUB",
    "E-ROLL-SPLIT",
    "E-SWITCH-NOTHING",
    "E-COMMIT-WIDTH",
    "E-UNFILLED",
    "E-SUB-ROLL",
]
"""Stable class of an error: one legality rule each."""


@dataclass(frozen=True)
class Diagnostic:
    """The first error of a source."""

    file: str
    position: Position
    code: Code
    message: str
    """What is wrong, the offending value, the limit."""
    snippet: str
    """Offending text with one blank between tokens; "" if there is none."""
    certain: bool
    """Whether the snippet alone makes any source illegal in this version of the toolchain."""

    def __str__(self) -> str:
        """Return the line that the compiler prints."""
        return (
            f"{self.file}:{self.position.line}:{self.position.column}: {self.code}: {self.message}"
        )


class IllegalError(Exception):
    """A source breaks a rule; leaves the compiler as a `Diagnostic`."""

    def __init__(self, code: Code, at: Span, message: str, certain: Span | None = None) -> None:
        super().__init__(code, at, message, certain)
        self.code = code
        self.at = at
        self.message = message
        self.certain = certain
        """Text that breaks the rule whatever stands around it, where it is known."""
