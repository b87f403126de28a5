"""The NPU's language as written: a tree of the source's own words, nothing looked up or checked.

Nodes are equal if their texts are, wherever they stand.
"""

from dataclasses import dataclass, field
from typing import Literal

from sim.npu.program import Position


@dataclass(frozen=True)
class Span:
    """A piece of the source."""

    start: int
    """Characters before it."""
    end: int
    line: int
    """From 1."""
    column: int
    """From 1."""


def joined(first: Span, last: Span) -> Span:
    """Return the piece from one to the other."""
    return Span(first.start, last.end, first.line, first.column)


NOWHERE = Span(0, 0, 1, 1)
"""Of nodes that no source has."""


@dataclass(frozen=True)
class Node:
    """A piece of the source that means something."""

    at: Span = field(default=NOWHERE, compare=False, kw_only=True, repr=False)

    @property
    def position(self) -> Position:
        """Where it begins."""
        return Position(self.at.line, self.at.column)


@dataclass(frozen=True)
class Word(Node):
    """A name or keyword."""

    text: str


@dataclass(frozen=True)
class Count(Node):
    """An integer."""

    value: int


@dataclass(frozen=True)
class Number(Node):
    """A constant."""

    text: str
    """As written: ``1e-6`` or ``1/3840``."""


@dataclass(frozen=True)
class AxisDecl(Node):
    """``axis NAME = SIZE`` or ``axis NAME = PARENT / SIZE``."""

    name: Word
    parent: Word | None
    size: Count


@dataclass(frozen=True)
class HbmDecl(Node):
    """``hbm NAME: DTYPE[AXES] PART``."""

    name: Word
    dtype: Word
    axes: tuple[Word, ...]
    part: Word


@dataclass(frozen=True)
class FactorText(Node):
    """``KIND:COUNT``."""

    kind: Word
    """An axis, ``copy`` or ``idle``; ``one`` without a count."""
    count: Count


@dataclass(frozen=True)
class PlaceDecl(Node):
    """``place NAME = cluster FACTOR, slices FACTOR ...``."""

    name: Word
    cluster: FactorText
    slices: tuple[FactorText, ...]


@dataclass(frozen=True)
class OffsetText(Node):
    """``NAME[INDEX]`` as an index."""

    name: Word
    index: Count


@dataclass(frozen=True)
class RegionText(Node):
    """``NAME`` or ``NAME[INDEX]``."""

    name: Word
    index: Count | OffsetText | None


@dataclass(frozen=True)
class LoopText(Node):
    """``for INDEX in 0..COUNT over AXIS buffers BUFFERS { BODY }``."""

    index: Word
    count: Count
    axis: Word
    buffers: Count | None
    body: tuple["StatementText", ...]


@dataclass(frozen=True)
class LoadText(Node):
    """``load OUTPUTS from SOURCES to PLACE block BLOCK``."""

    outputs: tuple[Word, ...]
    sources: tuple[RegionText, ...]
    place: Word
    block: Count | None


@dataclass(frozen=True)
class StoreText(Node):
    """``store SOURCE to TARGET``."""

    source: Word
    target: RegionText


@dataclass(frozen=True)
class LookupText(Node):
    """``lookup DTYPE keep``."""

    dtype: Word
    keep: bool


@dataclass(frozen=True)
class SwitchText(Node):
    """``switch broadcast`` or ``switch gather AXIS``."""

    axis: Word | None


@dataclass(frozen=True)
class ContractText(Node):
    """``contract OPERAND scale SCALE``."""

    operand: Word
    scale: Word | None


@dataclass(frozen=True)
class AluText(Node):
    """``FUNCTION OPERANDS``; the word ``self`` is an operand too."""

    function: Word
    operands: tuple[Word | Number, ...]


@dataclass(frozen=True)
class AxisStage(Node):
    """``sum AXIS`` or ``reduce AXIS``."""

    kind: Literal["sum", "reduce"]
    axis: Word


StageText = LookupText | SwitchText | ContractText | AluText | AxisStage


@dataclass(frozen=True)
class CommitText(Node):
    """``commit MEMORY DTYPE pieces PIECES lanes LANES``."""

    memory: Word
    dtype: Word | None
    """None exactly for ``vrf``."""
    pieces: Count | None
    lanes: Count | None
    """Only for ``trf``."""


@dataclass(frozen=True)
class PassText(Node):
    """``OUTPUT = CONTEXT SOURCE roll ROLL | STAGES | COMMIT``."""

    output: Word
    context: Word
    source: Word
    roll: Word | None
    stages: tuple[StageText, ...]
    commit: CommitText


StatementText = LoopText | LoadText | StoreText | PassText
Item = AxisDecl | HbmDecl | PlaceDecl | StatementText


@dataclass(frozen=True)
class KernelText(Node):
    """A whole source."""

    name: Word
    items: tuple[Item, ...]
