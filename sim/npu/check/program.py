"""Check a whole syntax tree, statement by statement."""

from sim.npu.check.declarations import check_arguments, declare_axis, declare_hbm, declare_place
from sim.npu.check.memory import check_memory
from sim.npu.check.passes import check_pass
from sim.npu.check.scope import Frame, Path, Scope
from sim.npu.check.transfers import check_load, check_store
from sim.npu.diagnostics import IllegalError
from sim.npu.program import Loop, Program, Statement
from sim.npu.signature import Signature
from sim.npu.syntax import (
    AxisDecl,
    HbmDecl,
    Item,
    KernelText,
    LoadText,
    LoopText,
    PassText,
    PlaceDecl,
    StatementText,
    StoreText,
)
from sim.npu.toolchain import Toolchain

_MAX_DEPTH = 2


def check(kernel: KernelText, signature: Signature, toolchain: Toolchain) -> Program:
    """Check a kernel against all rules: names, shapes and places first, then memory.

    Raises:
        IllegalError: the first rule that it breaks, in the order of the source.
    """
    scope = Scope(signature, toolchain)
    check_arguments(kernel, scope)
    body = []
    for item in kernel.items:
        body += [s for s in (_item(item, scope),) if s is not None]
    arguments = tuple(k.tensor for k in scope.tensors.items() if k.tensor.memory == "hbm")
    axes, placements = scope.axes.items(), scope.placements.items()
    program = Program(kernel.name.text, axes, arguments, placements, tuple(body))
    check_memory(program, toolchain.limits)
    _check_filled(kernel, scope)
    return program


def _item(item: Item, scope: Scope) -> Statement | None:
    match item:
        case AxisDecl():
            declare_axis(item, scope)
        case HbmDecl():
            declare_hbm(item, scope)
        case PlaceDecl():
            declare_place(item, scope)
        case _:
            return _statement(item, (), scope)
    return None


def _statement(text: StatementText, path: Path, scope: Scope) -> Statement:
    if isinstance(text, LoopText):
        return _loop(text, path, scope)
    scope.count_command(path, text.at)
    match text:
        case LoadText():
            return check_load(text, path, scope)
        case StoreText():
            return check_store(text, path, scope)
        case PassText():
            return check_pass(text, path, scope)


def _loop(text: LoopText, path: Path, scope: Scope) -> Loop:
    frame = _frame(text, path, scope)
    body = tuple(_statement(statement, (*path, frame), scope) for statement in text.body)
    buffers = text.buffers.value if text.buffers else 1
    return Loop(text.index.text, frame.count, frame.axis.name, buffers, body, text.position)


def _frame(text: LoopText, path: Path, scope: Scope) -> Frame:
    axis = scope.axes.find(text.axis)
    if axis.parent:
        message = f"{axis.name} counts blocks of {axis.parent}; loop over {axis.parent}"
        raise IllegalError("E-TILE-BLOCK", text.axis.at, message)
    if any(frame.axis == axis for frame in path):
        message = f"loop over {axis.name} inside a loop over {axis.name}"
        raise IllegalError("E-LOOP-NESTED", text.axis.at, message)
    if len(path) == _MAX_DEPTH:
        message = f"depth {len(path) + 1} > {_MAX_DEPTH}"
        raise IllegalError("E-LOOP-NESTED", text.index.at, message)
    count = text.count.value
    if not count or axis.size % count:
        message = f"{axis.size} of {axis.name} is not divisible into {count} tiles"
        raise IllegalError("E-TILE-DIVIDES", text.count.at, message)
    limit = scope.toolchain.limits.max_buffers
    if text.buffers and not 1 <= text.buffers.value <= limit:
        message = f"{text.buffers.value} buffers; at most {limit}"
        raise IllegalError("E-BUFFERS", text.buffers.at, message)
    scope.n_loops += 1
    return Frame(scope.n_loops, axis, count, _stored(text))


def _stored(loop: LoopText) -> frozenset[str]:
    """HBM tensors that a loop stores to, at any depth."""
    names: set[str] = set()
    todo: list[StatementText] = list(loop.body)
    while todo:
        statement = todo.pop()
        if isinstance(statement, LoopText):
            todo += statement.body
        elif isinstance(statement, StoreText):
            names.add(statement.target.name.text)
    return frozenset(names)


def _check_filled(kernel: KernelText, scope: Scope) -> None:
    for item in kernel.items:
        if not isinstance(item, HbmDecl) or item.name.text not in scope.signature.results:
            continue
        if item.name.text not in scope.stored:
            raise IllegalError("E-UNFILLED", item.at, f"`{item.name.text}` is never stored")
