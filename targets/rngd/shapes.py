"""Sizes of a kernel's axes, and types of its tensors."""

import re
from collections.abc import Iterator
from typing import Final

from targets.rngd.ir.syntax import Assertion, Assign, Axis, Function, Loop, Type, Typed

_SIZE: Final = re.compile(r"([A-Za-z]\w*) == (\d+)")


def size_asserted(assertion: Assertion) -> tuple[str, int] | None:
    """Return the axis whose size an assertion says and the size; None if it says anything else."""
    match = _SIZE.fullmatch(assertion.text)
    return (match[1], int(match[2])) if match else None


def bindings(function: Function) -> list[tuple[str, int]]:
    """Return the sizes that a kernel is made for: the compiler takes them from assertions."""
    asserted = (s for s in function.statements() if isinstance(s, Assertion))
    return [found for assertion in asserted if (found := size_asserted(assertion))]


def axis_sizes(function: Function) -> dict[str, int]:
    """Return the elements of every axis of a kernel that passed the rules."""
    sizes = dict(bindings(function))
    for statement in function.statements():
        if isinstance(statement, Axis):
            size = statement.size
            sizes[statement.name] = size if isinstance(size, int) else sizes[size]
    return sizes


def tensors(function: Function) -> Iterator[Typed]:
    """Yield every tensor that has a name, what a loop carries among them."""
    yield from function.parameters
    for statement in function.statements():
        if isinstance(statement, Assign):
            yield from statement.outputs
        elif isinstance(statement, Loop):
            yield from statement.results
            carried = zip(statement.carried, statement.results, strict=False)
            yield from (Typed(item.keyword, result.type) for item, result in carried)


def types(function: Function) -> dict[str, Type]:
    """Return every tensor's type by its name, of a kernel that passed the rules."""
    return {tensor.name: tensor.type for tensor in tensors(function)}
