"""What a kernel writes that may be a parameter's memory."""

from collections.abc import Iterable, Iterator
from typing import Final

from targets.rngd.ir.syntax import Assign, Call, Function, Indexed, Loop, Statement, Write

_VIEWS: Final = frozenset({"bridge", "concat", "fuse", "reshape", "slice", "transmute", "via_dram"})
"""Operations that may move nothing: what is in DRAM goes via DRAM where it lies."""
_WRITTEN: Final = frozenset({"dst", "init"})
"""Keywords of the operand that an operation writes, and gives on under its output's name."""


def writes(function: Function, names: Iterable[str]) -> Iterator[tuple[str, Statement]]:
    """Yield each write into the memory of named tensors, with the name that it goes by there."""
    held = _held(names, list(_shared(function)))
    for statement in function.statements():
        yield from ((target, statement) for target in _targets(statement) if target in held)


def _targets(statement: Statement) -> list[str]:
    if isinstance(statement, Write):
        return [statement.target]
    if isinstance(statement, Assign) and isinstance(statement.operation, Call):
        return [item.text for item in statement.operation.items if item.keyword in _WRITTEN]
    return []


def _shared(function: Function) -> Iterator[tuple[str, str]]:
    """Yield pairs of tensors: the second may be the memory of the first."""
    for statement in function.statements():
        if isinstance(statement, Loop):
            names = [item.keyword for item in statement.carried]
            yield from ((item.text, item.keyword) for item in statement.carried)
            yield from zip(statement.yields, names, strict=False)
            yield from zip(statement.yields, (r.name for r in statement.results), strict=False)
        elif isinstance(statement, Assign):
            outputs = [output.name for output in statement.outputs]
            yield from ((of, to) for of in _sources(statement) for to in outputs)


def _sources(statement: Assign) -> list[str]:
    operation = statement.operation
    if isinstance(operation, Indexed):
        return [operation.name]
    if isinstance(operation, Call) and operation.name in _VIEWS:
        return operation.mentioned
    return _targets(statement)


def _held(names: Iterable[str], shared: list[tuple[str, str]]) -> set[str]:
    """Return what may be the memory of named tensors, round and round the loops."""
    held, n_before = set(names), -1
    while n_before != len(held):
        n_before = len(held)
        for of, to in shared:
            if of in held:
                held.add(to)
    return held
