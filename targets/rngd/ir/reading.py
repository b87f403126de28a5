"""Read the text of a traced kernel."""

from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from targets.rngd.ir.syntax import (
    Assertion,
    Assign,
    Axis,
    Call,
    Contract,
    Function,
    Fused,
    Indexed,
    Item,
    Loop,
    Mark,
    Read,
    Statement,
    Type,
    Typed,
    Vector,
    Write,
)

MAX_CHARACTERS: Final = 262_144
"""Of a text; the largest kernels here have a twentieth. Bounds the time of all that follows."""
MAX_NESTED: Final = 8
"""Loops in each other, of a text. Bounds the recursion of all that follows."""
_SHOWN: Final = 40


class Unreadable(Exception):
    """A text that holds something that no candidate may use.

    Attributes:
        what: stands there.
        line: of the text, without spaces around it.
    """

    def __init__(self, what: str, line: str) -> None:
        super().__init__(what, line)
        self.what, self.line = what, line


def read(text: str) -> Function:
    """Read any text; what is printed of the result says the same.

    Raises:
        Unreadable: it holds something that has no rule in the grammar.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"more than {MAX_CHARACTERS} characters", "")
    try:
        function: Function = _parser().parse(text)  # type: ignore[assignment]
    except UnexpectedInput as e:
        raise _unreadable(text, e) from None
    if _n_nested(function.body) > MAX_NESTED:
        raise Unreadable(f"more than {MAX_NESTED} loops in each other", "")
    return function


def _unreadable(text: str, error: UnexpectedInput) -> Unreadable:
    found = ""
    if isinstance(error, UnexpectedToken):
        found = str(error.token)
    elif isinstance(error, UnexpectedCharacters):
        found = error.char
    lines = text.split("\n")
    line = lines[error.line - 1].strip() if 0 < error.line <= len(lines) else ""
    return Unreadable(found[:_SHOWN].encode("unicode_escape").decode() or "the end", line)


def _n_nested(body: tuple[Statement, ...]) -> int:
    """Return how deep loops are in each other."""
    depth, loops = 0, [each for each in body if isinstance(each, Loop)]
    while loops:
        depth += 1
        loops = [each for loop in loops for each in loop.body if isinstance(each, Loop)]
    return depth


class _Expression(NamedTuple):
    text: str
    n_operations: int
    reduces: bool = False


@v_args(inline=True)
class _Builder(Transformer[Token, Function]):
    """Makes a node of each rule as it is recognized, so that no text is too deep."""

    def start(self, name: Token, *parts: Any) -> Function:
        by_kind = {type(part): part for part in parts}
        return Function(
            str(name),
            by_kind.get(_Bindings, _Bindings(())).all,
            tuple(part for part in parts if isinstance(part, Typed)),
            by_kind[_Returns].all,
            by_kind[_Body].all,
            by_kind.get(_Names, _Names(())).all,
        )

    def bindings(self, *pairs: tuple[str, int]) -> "_Bindings":
        return _Bindings(pairs)

    def binding(self, name: Token, size: Token) -> tuple[str, int]:
        return str(name), int(size)

    def parameter(self, name: Token, kind: Type) -> Typed:
        return Typed(str(name), kind)

    output = parameter

    def returns(self, *types: Type) -> "_Returns":
        return _Returns(types)

    def returned(self, *names: Token) -> "_Names":
        return _Names(tuple(map(str, names)))

    yields = returned

    def axes(self, *names: Token) -> "_Names":
        return _Names(tuple(map(str, names)))

    def type(self, *parts: Any) -> Type:
        axes = parts[0].all if len(parts) == 2 else ()
        return Type(axes, str(parts[-1]))

    def body(self, *statements: Statement) -> "_Body":
        return _Body(statements)

    def assertion(self, left: Token, relation: Token, right: Token) -> Assertion:
        return Assertion(f"{left} {relation} {right}")

    def axis(self, name: Token, size: Token) -> Axis:
        return Axis(str(name), _size(size))

    def assign(self, outputs: Any, operation: Any, hints: "_Items | None" = None) -> Assign:
        return Assign(outputs, operation, _listed(hints.all) if hints else "")

    def hints(self, items: "_Items") -> "_Items":
        return _Items(tuple(Item("", f"{k} = {v}" if k else v) for k, v in items.all))

    def write(self, target: Token, index: Token, value: Token) -> Write:
        return Write(str(target), _size(index), str(value))

    def outputs(self, *outputs: Typed) -> tuple[Typed, ...]:
        return outputs

    def loop(self, *parts: Any) -> Loop:
        results = parts[0] if isinstance(parts[0], tuple) else ()
        rest = parts[1:] if results else parts
        by_kind = {type(part): part for part in rest[3:]}
        return Loop(
            results,
            str(rest[0]),
            _size(rest[2]),
            by_kind.get(_Items, _Items(())).all,
            by_kind.get(_Carried, _Carried(())).all,
            by_kind[_Body].all,
            by_kind[_Names].all,
        )

    def settings(self, *items: Item) -> "_Items":
        return _Items(items)

    def carried(self, *items: Item) -> "_Carried":
        return _Carried(items)

    def setting(self, name: Token, value: str) -> Item:
        return Item(str(name), str(value))

    carry = setting
    keyword = setting

    def opened(self, mark: Token, text: Token) -> Mark:
        return Mark(f"{mark}({text})")

    def closed(self, mark: Token) -> Mark:
        return Mark(f"{mark}()")

    def call(self, name: Token, items: "_Items | None" = None) -> Call:
        return Call(str(name), items.all if items else ())

    def indexed(self, name: Token, index: Token) -> Indexed:
        return Indexed(str(name), _size(index))

    def fused(self, tactic: Token, *parts: Any) -> Fused:
        return Fused(str(tactic), parts[:-1], parts[-1])

    def read(self, ref: Token, name: Token, *items: Item) -> Read:
        return Read(str(ref), str(name), items)

    def contract(self, ref: Token, left: Token, right: Token, *axes: "_Names") -> Contract:
        return Contract(str(ref), (str(left), str(right)), axes[0].all if axes else ())

    def vector(self, ref: Token, expression: _Expression) -> Vector:
        return Vector(str(ref), *expression)

    def plain(self, operand: Token) -> _Expression:
        return _Expression(str(operand), 0)

    def binary(self, left: Token, operator: Token, right: Token) -> _Expression:
        return _Expression(f"{left} {operator} {right}", 1)

    def unary(self, operator: Token, operand: Token) -> _Expression:
        return _Expression(f"{operator} {operand}", 1)

    postfix = unary

    def reduce(self, operator: Token, *parts: Token) -> _Expression:
        return _Expression(f"{operator} t[{' '.join(parts[:-1])}] {parts[-1]}", 1, reduces=True)

    def compact(self, left: Token, relation: Token, right: Token, *parts: Any) -> _Expression:
        axes, size, operand = " ".join(parts[:-2]), parts[-2], parts[-1]
        condition = f"{left} {relation} {right}"
        text = f"filter_compaction({condition}, t[{axes}], max_size: {size}) {operand}"
        return _Expression(text, 1)

    def choice(self, left: Token, relation: Token, right: Token, *ways: Any) -> _Expression:
        yes, no = ways
        n_operations = 1 + yes.n_operations + no.n_operations
        condition = f"if {left} {relation} {right}"
        return _Expression(f"{condition} {{ {yes.text} }} else {{ {no.text} }}", n_operations)

    def steps(self, *parts: Any) -> _Expression:
        lines = [step.text for step in parts[:-1]]
        n_operations = sum(step.n_operations for step in parts[:-1])
        return _Expression("\n".join((*lines, str(parts[-1]))), n_operations)

    def step(self, ref: Token, expression: _Expression) -> _Expression:
        return _Expression(f"{ref} = {expression.text}", expression.n_operations)

    def items(self, *items: Item) -> "_Items":
        return _Items(items)

    def positional(self, value: str) -> Item:
        return Item("", str(value))

    def list(self, items: "_Items | None" = None) -> str:
        return f"[{_listed(items.all) if items else ''}]"

    def tuple(self, items: "_Items") -> str:
        return f"({_listed(items.all)})"

    def record(self, *entries: str) -> str:
        return f"{{ {', '.join(entries)} }}"

    def entry(self, name: Token, value: str) -> str:
        return f"{name}: {value}"

    def choose(self, name: Token, items: "_Items") -> str:
        return f"{name}({_listed(items.all)})"


class _Bindings(NamedTuple):
    all: tuple[tuple[str, int], ...]


class _Returns(NamedTuple):
    all: tuple[Type, ...]


class _Body(NamedTuple):
    all: tuple[Statement, ...]


class _Names(NamedTuple):
    all: tuple[str, ...]


class _Items(NamedTuple):
    all: tuple[Item, ...]


class _Carried(NamedTuple):
    all: tuple[Item, ...]


def _listed(items: tuple[Item, ...]) -> str:
    return ", ".join(map(str, items))


def _size(token: Token) -> int | str:
    return int(token) if token.type == "INT" else str(token)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = files("targets.rngd.ir").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", transformer=_Builder(), maybe_placeholders=False)
