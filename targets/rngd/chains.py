"""How many vector operations a pass over one tensor does, in whatever pieces they are written."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from targets.rngd.ir.syntax import Assign, Call, Function, Fused, Indexed, Loop, Statement, Write

_Rows = dict[str, int]
"""Vector operations in a row that end with a tensor, by its name."""


class Chain(NamedTuple):
    """Vector operations that may be one pass."""

    length: int
    end: str
    """The tensor that it makes; "" where nothing is done."""


def longest_chain(function: Function) -> Chain:
    """Return the most vector operations in a row.

    The compiler makes one pass of operations that follow each other, also through views, copies
    and loops of one turn. A contraction begins a new row. An operation that reduces counts whole;
    what of it comes after the reduction begins the next row.
    """
    return max(_chains(function.body, {}), key=lambda c: c.length, default=Chain(0, ""))


def _chains(body: Iterable[Statement], rows: _Rows) -> Iterator[Chain]:
    for statement in body:
        if isinstance(statement, Loop):
            rows |= {item.keyword: rows.get(item.text, 0) for item in statement.carried}
            yield from _chains(statement.body, rows)
            made = zip(statement.results, statement.yields, strict=False)
            rows |= {result.name: rows.get(name, 0) for result, name in made}
        elif isinstance(statement, Write):
            rows[statement.target] = _row((statement.target, statement.value), rows)
        elif isinstance(statement, Assign):
            chain = _chain(statement, rows)
            yield chain
            left = _left(statement.operation, chain.length)
            rows |= dict.fromkeys((*_written(statement.operation), *_outputs(statement)), left)


def _chain(statement: Assign, rows: _Rows) -> Chain:
    operation = statement.operation
    own = operation.n_vector_operations if isinstance(operation, Fused) else 0
    return Chain(_row(_operands(operation), rows) + own, _outputs(statement)[0])


def _row(names: Iterable[str], rows: _Rows) -> int:
    return max((rows.get(name, 0) for name in names), default=0)


def _operands(operation: Call | Indexed | Fused) -> list[str]:
    if isinstance(operation, Indexed):
        return [operation.name]
    if isinstance(operation, Call):
        return operation.mentioned
    return [] if operation.n_contractions else [read.name for read in operation.reads]


def _left(operation: Call | Indexed | Fused, length: int) -> int:
    """Return what of a row goes on after an operation."""
    after = operation.n_after_reduction if isinstance(operation, Fused) else None
    return length if after is None else after


def _written(operation: Call | Indexed | Fused) -> list[str]:
    items = operation.items if isinstance(operation, Call) else ()
    return [item.text for item in items if item.keyword == "dst"]


def _outputs(statement: Assign) -> list[str]:
    return [output.name for output in statement.outputs]
