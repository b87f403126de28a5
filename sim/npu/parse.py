"""Parse a source of the NPU's language."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token, Transformer_NonRecursive, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternStr
from lark.tree import Meta

from sim.npu.diagnostics import Diagnostic
from sim.npu.program import Position
from sim.npu.syntax import (
    AluText,
    AxisDecl,
    AxisStage,
    CommitText,
    ContractText,
    Count,
    FactorText,
    HbmDecl,
    Item,
    KernelText,
    LoadText,
    LookupText,
    LoopText,
    Number,
    OffsetText,
    PassText,
    PlaceDecl,
    RegionText,
    Span,
    StoreText,
    SwitchText,
    Word,
)

MAX_CHARACTERS: Final = 65_536
"""Of a source; bounds the time of everything that follows."""
_TERMINALS: Final = {
    "$END": "the end",
    "NAME": "a name",
    "INT": "an integer",
    "NUM": "a number",
    "RANGE": "0..N",
    "DTYPE": "a dtype",
    "PART": "in, weight, inout, out, scratch",
    "CONTEXT": "main, sub",
    "UNARY": "exp, erf, rsqrt",
    "BINARY": "mul, add, sub, max, div",
    "CUT": "an axis",
}


def parse(name: str, source: str) -> KernelText | Diagnostic:
    """Parse any text.

    Args:
        name: of the file, for the diagnostic.
        source: the text.
    """
    if len(source) > MAX_CHARACTERS:
        message = f"{len(source)} characters; a source has at most {MAX_CHARACTERS}"
        return Diagnostic(name, Position(1, 1), "E-SYNTAX", message, "", certain=False)
    try:
        tree = _parser().parse(source)
    except UnexpectedInput as e:
        return _diagnostic(name, source, e)
    kernel: KernelText = _Builder().transform(tree)
    return kernel


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = files("sim.npu").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def _diagnostic(name: str, source: str, error: UnexpectedInput) -> Diagnostic:
    expected: Iterable[str] = ()
    if isinstance(error, UnexpectedToken):
        found, expected = str(error.token), error.expected
    elif isinstance(error, UnexpectedCharacters):
        found, expected = error.char, error.allowed or ()
    else:
        found = ""
    shown = found[:40].encode("unicode_escape").decode()
    what = f"unexpected `{shown}`" if shown else "unexpected end"
    options = ", ".join(sorted({_terminal(terminal) for terminal in expected}))
    line, column = (error.line, error.column) if shown else _end(source)
    message = f"{what}; expected one of {{{options}}}"
    snippet = found if shown == found else ""
    return Diagnostic(name, Position(line, column), "E-SYNTAX", message, snippet, certain=False)


def _end(source: str) -> tuple[int, int]:
    lines = source.split("\n")
    return len(lines), len(lines[-1]) + 1


def _terminal(name: str) -> str:
    if name in _TERMINALS:
        return _TERMINALS[name]
    pattern = _parser().get_terminal(name).pattern
    assert isinstance(pattern, PatternStr), name
    return pattern.value


def _span(meta: Meta | Token) -> Span:
    start, end, line, column = meta.start_pos, meta.end_pos, meta.line, meta.column
    assert start is not None  # empty rules alone have no place, and this grammar has none
    assert end is not None
    assert line is not None
    assert column is not None
    return Span(start, end, line, column)


def _rule(method: Callable[..., Any]) -> Any:
    """Let lark call ``method(self, span, *children)``."""

    def build(builder: Any, meta: Meta, children: list[Any]) -> Any:
        return method(builder, _span(meta), *children)

    return v_args(meta=True)(build)


class _Builder(Transformer_NonRecursive[Token, KernelText]):
    """Makes a node of ours of each rule's node, bottom up; a method is named as its rule."""

    def __default_token__(self, token: Token) -> Word:
        return Word(str(token), at=_span(token))

    def INT(self, token: Token) -> Count:
        return Count(int(token), at=_span(token))

    def RANGE(self, token: Token) -> Count:
        return Count(int(token.removeprefix("0..")), at=_span(token))

    @_rule
    def number(self, at: Span, value: Word, divisor: Word | None) -> Number:
        return Number(f"{value.text}/{divisor.text}" if divisor else value.text, at=at)

    @_rule
    def start(self, at: Span, name: Word, *items: Item) -> KernelText:
        return KernelText(name, items, at=at)

    @_rule
    def axis(self, at: Span, name: Word, *size: Any) -> AxisDecl:
        parent = size[0] if len(size) > 1 else None
        return AxisDecl(name, parent, size[-1], at=at)

    @_rule
    def hbm(self, at: Span, name: Word, dtype: Word, axes: tuple[Word, ...], part: Word) -> HbmDecl:
        return HbmDecl(name, dtype, axes, part, at=at)

    @_rule
    def place(self, at: Span, name: Word, cluster: FactorText, *slices: FactorText) -> PlaceDecl:
        return PlaceDecl(name, cluster, slices, at=at)

    @_rule
    def factor(self, at: Span, kind: Word, count: Count | None = None) -> FactorText:
        return FactorText(kind, count or Count(1), at=at)

    cluster = factor

    @_rule
    def loop(self, at: Span, *parts: Any) -> LoopText:
        index, count, axis, buffers, *body = parts
        return LoopText(index, count, axis, buffers, tuple(body), at=at)

    @_rule
    def load(
        self,
        at: Span,
        outputs: tuple[Word, ...],
        sources: tuple[RegionText, ...],
        *target: Any,
    ) -> LoadText:
        return LoadText(outputs, sources, *target, at=at)

    @_rule
    def store(self, at: Span, source: Word, target: RegionText) -> StoreText:
        return StoreText(source, target, at=at)

    @_rule
    def names(self, at: Span, *names: Word) -> tuple[Word, ...]:
        return names

    @_rule
    def regions(self, at: Span, *regions: RegionText) -> tuple[RegionText, ...]:
        return regions

    @_rule
    def region(self, at: Span, name: Word, index: Count | OffsetText | None) -> RegionText:
        return RegionText(name, index, at=at)

    @_rule
    def offset(self, at: Span, name: Word, index: Count) -> OffsetText:
        return OffsetText(name, index, at=at)

    @_rule
    def tensor_pass(self, at: Span, *parts: Any) -> PassText:
        output, context, source, roll, *stages, commit = parts
        return PassText(output, context, source, roll, tuple(stages), commit, at=at)

    @_rule
    def lookup(self, at: Span, dtype: Word, keep: Word | None) -> LookupText:
        return LookupText(dtype, keep is not None, at=at)

    @_rule
    def broadcast(self, at: Span) -> SwitchText:
        return SwitchText(None, at=at)

    @_rule
    def gather(self, at: Span, axis: Word) -> SwitchText:
        return SwitchText(axis, at=at)

    @_rule
    def contract(self, at: Span, operand: Word, scale: Word | None) -> ContractText:
        return ContractText(operand, scale, at=at)

    @_rule
    def alu(self, at: Span, function: Word, *operands: Word | Number) -> AluText:
        return AluText(function, operands, at=at)

    @_rule
    def sum(self, at: Span, axis: Word) -> AxisStage:
        return AxisStage("sum", axis, at=at)

    @_rule
    def reduce(self, at: Span, axis: Word) -> AxisStage:
        return AxisStage("reduce", axis, at=at)

    @_rule
    def commit(self, at: Span, memory: Word, *options: Any) -> CommitText:
        dtype, pieces, lanes = (*options, None, None, None)[:3]
        return CommitText(memory, dtype, pieces, lanes, at=at)
