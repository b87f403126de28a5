"""A traced kernel as a tree; ``str`` of a node is the text that the compiler gets."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_INDENT: Final = "    "
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
Size = int | str
"""A number of elements, or the axis that has it."""


@dataclass(frozen=True)
class Type:
    """Of a tensor."""

    axes: tuple[str, ...]
    dtype: str

    def __str__(self) -> str:
        return f"[{', '.join(self.axes)}]/{self.dtype}"


@dataclass(frozen=True)
class Typed:
    """A tensor's name and type."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


class Item(NamedTuple):
    """An argument of a call."""

    keyword: str
    """"" if it has none."""
    text: str

    def __str__(self) -> str:
        return f"{self.keyword}={self.text}" if self.keyword else self.text


@dataclass(frozen=True)
class Assertion:
    """Two sizes that the author says are in a relation."""

    text: str

    def __str__(self) -> str:
        return f"assert {self.text}"


@dataclass(frozen=True)
class Axis:
    """An axis of the author's own."""

    name: str
    size: Size

    def __str__(self) -> str:
        return f"{self.name}: Axis = {self.size}"


@dataclass(frozen=True)
class Call:
    """An operation that is no arithmetic: moves, views, constants."""

    name: str
    items: tuple[Item, ...]

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.items)})"

    @property
    def mentioned(self) -> list[str]:
        """All names in its operands, of tensors and of others."""
        return [name for item in self.items for name in _NAME.findall(item.text)]


@dataclass(frozen=True)
class Indexed:
    """One slice of a tensor, at a loop's index."""

    name: str
    index: Size

    def __str__(self) -> str:
        return f"{self.name}[{self.index}]"


@dataclass(frozen=True)
class Read:
    """An operand of a fused operation, as it comes from memory."""

    ref: str
    name: str
    items: tuple[Item, ...]

    def __str__(self) -> str:
        return f"{self.ref} = read({_listed((self.name, *self.items))})"


@dataclass(frozen=True)
class Contract:
    """A contraction on the dot product engine."""

    ref: str
    operands: tuple[str, str]
    kept: tuple[str, ...]
    """Axes of what it gives."""

    def __str__(self) -> str:
        kept = _listed(self.kept)
        return f"{self.ref} = dpe.exec({','.join(self.operands)} -> [{kept}])"


@dataclass(frozen=True)
class Vector:
    """One expression of the vector engine."""

    ref: str
    text: str
    n_operations: int
    reduces: bool = False
    """Whether it sums, or the like, over an axis."""

    def __str__(self) -> str:
        return f"{self.ref} = ve.exec({self.text})"


@dataclass(frozen=True)
class Fused:
    """Everything that one pass over the operands does."""

    tactic: str
    instructions: tuple[Read | Contract | Vector, ...]
    written: Type

    def __str__(self) -> str:
        lines = [str(each) for each in self.instructions] + [f"write.to({self.written})"]
        return "\n".join((f"{self.tactic}(", *_indented(lines), ")"))

    @property
    def reads(self) -> tuple[Read, ...]:
        """Its operands."""
        return tuple(each for each in self.instructions if isinstance(each, Read))

    @property
    def n_contractions(self) -> int:
        """On the dot product engine."""
        return sum(isinstance(each, Contract) for each in self.instructions)

    @property
    def n_vector_operations(self) -> int:
        """On the vector engine, which works through them one after the other."""
        return sum(each.n_operations for each in self._vectors)

    @property
    def n_after_reduction(self) -> int | None:
        """On the vector engine, after the last reduction over an axis; None without one."""
        last = max((i for i, each in enumerate(self._vectors) if each.reduces), default=None)
        return None if last is None else sum(v.n_operations for v in self._vectors[last + 1 :])

    @property
    def _vectors(self) -> tuple[Vector, ...]:
        return tuple(each for each in self.instructions if isinstance(each, Vector))


@dataclass(frozen=True)
class Assign:
    """An operation whose results get names."""

    outputs: tuple[Typed, ...]
    operation: Call | Indexed | Fused
    hints: str

    def __str__(self) -> str:
        hints = f" @ context({self.hints})" if self.hints else ""
        return f"{_listed(self.outputs)} = {self.operation}{hints}"


@dataclass(frozen=True)
class Write:
    """One slice of a tensor written, at a loop's index."""

    target: str
    index: Size
    value: str

    def __str__(self) -> str:
        return f"{self.target}[{self.index}] = {self.value}"


@dataclass(frozen=True)
class Mark:
    """A begin or an end that profiles show."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Loop:
    """A loop of the hardware."""

    results: tuple[Typed, ...]
    index: str
    limit: Size
    settings: tuple[Item, ...]
    carried: tuple[Item, ...]
    body: "tuple[Statement, ...]"
    yields: tuple[str, ...]

    def __str__(self) -> str:
        last = f"yield {_listed(self.yields)}".rstrip() + ";"
        return "\n".join((self.head, *_indented((*map(str, self.body), last))))

    @property
    def head(self) -> str:
        """Its first line."""
        results = f"{_listed(self.results)} = " if self.results else ""
        settings = f" [{_listed(self.settings)}]" if self.settings else ""
        pairs = [f"{item.keyword} = {item.text}" for item in self.carried]
        carried = f" ({_listed(pairs)})" if pairs else ""
        return f"{results}for {self.index} in 0..{self.limit}{settings}{carried}:"


Statement = Assertion | Axis | Assign | Write | Loop | Mark


@dataclass(frozen=True)
class Function:
    """A kernel."""

    name: str
    bindings: tuple[tuple[str, int], ...]
    parameters: tuple[Typed, ...]
    results: tuple[Type, ...]
    body: tuple[Statement, ...]
    returned: tuple[str, ...]

    def __str__(self) -> str:
        bindings = _listed(f"{name}={size}" for name, size in self.bindings)
        head = f"def {self.name}<{bindings}>(" if bindings else f"def {self.name}("
        parameters = ",\n".join(_indented(map(str, self.parameters)))
        body = _indented(map(str, self.body))
        last = (f"{_INDENT}return {_listed(self.returned)}",) if self.returned else ()
        results = _listed(self.results) or "None"
        return "\n".join((head, parameters, f") -> {results}:", *body, *last)) + "\n"

    def statements(self) -> Iterator[Statement]:
        """Every statement, those of loops after the loop."""
        waiting = list(reversed(self.body))
        while waiting:
            statement = waiting.pop()
            yield statement
            if isinstance(statement, Loop):
                waiting += reversed(statement.body)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _indented(texts: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{line}" for text in texts for line in text.split("\n")]
