"""This target's own rules: what the vendor's evaluator would let pass, and answer too well."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from targets.rngd.chains import longest_chain
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.dtypes import BITS
from targets.rngd.ir.reading import Unreadable, read
from targets.rngd.ir.syntax import (
    Assertion,
    Assign,
    Axis,
    Call,
    Function,
    Fused,
    Loop,
    Statement,
    Type,
)
from targets.rngd.shapes import axis_sizes, bindings, size_asserted, tensors, types
from targets.rngd.task import Task
from targets.rngd.writing import writes

MAX_UNROLL: Final = 8
MAX_VECTOR_OPERATIONS: Final = 16
"""In a row. The evaluator charges none of them; the engine has so many units."""
MAX_AXIS: Final = 1 << 28
"""Elements; the compiler panics on far larger ones."""
ALLOWED: Final = frozenset({
    "arange", "bridge", "concat", "copy", "full", "fuse", "gather", "load", "mask", "pad",
    "reshape", "scatter", "scratchpad", "slice", "store", "transmute", "vector", "via_dram",
})  # fmt: skip
"""Operations that are no arithmetic."""
REFUSED: Final[Mapping[str, str]] = {
    "@compiler_config": "a compiler configuration would change what cycles mean",
    "@auto_config": "a compiler configuration would change what cycles mean",
    "autoexpr": "a compiler configuration would change what cycles mean",
    "imp_cmd": "imperative blocks cost nothing here, and much on the chip",
    "sym_expr": "imperative blocks cost nothing here, and much on the chip",
    "reduce_max_i32": "imperative blocks cost nothing here, and much on the chip",
    "extern": "a kernel must be whole",
    "visa_call": "a kernel is written in the language, not below it",
    "dump": "a kernel prints nothing",
    "dram": "layouts of parameters are the task's",
    "all_reduce": "there is one chip",
    "all_gather": "there is one chip",
    "all_to_all": "there is one chip",
    "reduce_scatter": "there is one chip",
    "def": "a kernel is one function: helpers are plain functions or tensor operations",
}
"""Constructs by name, with the reason."""
_ONE_CHIP: Final = re.compile(r"\bChip: (None|Broadcast)\b")
_READ_ITEMS: Final = frozenset(
    {"typecast_to", "table_lookup", "broadcast_to", "pad", "slide", "subtraction"}
)
_HINTS: Final = ("operator = ", "heuristic_hint = ", "population_mode = ")
_SETTINGS: Final = frozenset(
    {"unroll", "auto_pipeline_top_n_candidates", "auto_pipeline_max_group_size"}
)


def judge(task: Task, text: str) -> Function | Diagnostic:
    """Return the kernel that a text defines, or the first rule that it breaks.

    Args:
        task: what the kernel must look like from outside.
        text: of the compiler's form; anything.
    """
    try:
        function = read(text)
    except Unreadable as e:
        return _unreadable(e)
    return next(_faults(task, function), None) or function


def _fault(rule: str, message: str, snippet: object = "", *, certain: bool = False) -> Diagnostic:
    return Diagnostic("rules", rule, message, snippet=str(snippet), certain=certain)


def _unreadable(found: Unreadable) -> Diagnostic:
    for word, reason in REFUSED.items():
        if re.search(rf"(?<!\w){re.escape(word)}\b", found.line):
            return _fault("construct", f"'{word}': {reason}", found.line)
    message = f"'{found.what}' is nothing that a candidate may use"
    return _fault("construct", message, found.line)


def _faults(task: Task, function: Function) -> Iterator[Diagnostic]:
    yield from _outside(task, function)
    yield from _axes(function)
    yield from _names(function)
    for statement in function.statements():
        yield from _statement(statement)
    yield from _chain(function)
    yield from _types(function)
    yield from _writes(task, function)


def _outside(task: Task, function: Function) -> Iterator[Diagnostic]:
    if function.name != task.name:
        yield _fault("signature", f"the kernel is named {function.name!r}, not {task.name!r}")
    yield from _bound(task, function)
    wanted_inputs = [f"{p.name}: {Type(p.axes, p.dtype)}" for p in task.parameters]
    yield from _differ("parameters", wanted_inputs, [str(p) for p in function.parameters])
    wanted_results = [str(Type(r.axes, r.dtype)) for r in task.results]
    yield from _differ("results", wanted_results, [str(r) for r in function.results])


def _bound(task: Task, function: Function) -> Iterator[Diagnostic]:
    bound = bindings(function)
    told = dict(function.bindings) or task.bindings  # older tracers leave them out
    if len(bound) != len(dict(bound)) or not dict(bound) == dict(told) == dict(task.bindings):
        wanted = ", ".join(f"{name}={size}" for name, size in sorted(task.bindings.items()))
        yield _fault("bindings", f"the bindings are not the task's; they are {wanted}")
    for statement in function.statements():
        if isinstance(statement, Assertion) and not size_asserted(statement):
            yield _fault("bindings", "it asserts what is not so, or not known", statement)


def _differ(what: str, wanted: list[str], found: list[str]) -> Iterator[Diagnostic]:
    if wanted != found:
        yield _fault("signature", f"its {what} are not the task's; they are {'; '.join(wanted)}")


def _axes(function: Function) -> Iterator[Diagnostic]:
    sizes = dict(bindings(function))
    for statement in function.statements():
        if not isinstance(statement, Axis):
            continue
        name, size = statement.name, statement.size
        if name in sizes:
            yield _fault("axis", f"the axis {name!r} is there twice", statement)
        if isinstance(size, str) and size not in sizes:
            yield _fault("axis", f"the axis {name!r} has no size that is known", statement)
            return
        sizes[name] = size if isinstance(size, int) else sizes[size]
        if not 0 < sizes[name] <= MAX_AXIS:
            message = f"an axis has 1 to {MAX_AXIS} elements; {name!r} has {sizes[name]}"
            yield _fault("axis", message, statement)


def _statement(statement: Statement) -> Iterator[Diagnostic]:
    if isinstance(statement, Loop):
        yield from _loop(statement)
    elif isinstance(statement, Assign):
        yield from _hints(statement)
        if isinstance(statement.operation, Call):
            yield from _call(statement.operation)
        elif isinstance(statement.operation, Fused):
            yield from _fused(statement.operation, str(statement.outputs[0]))


def _call(call: Call) -> Iterator[Diagnostic]:
    if call.name in REFUSED:
        yield _fault("construct", f"'{call.name}': {REFUSED[call.name]}", call)
    elif call.name not in ALLOWED:
        message = f"'{call.name}' is no operation of one chip's kernels"
        yield _fault("construct", f"{message}; {REFUSED['def']}", call)


def _hints(statement: Assign) -> Iterator[Diagnostic]:
    for hint in re.split(r", (?=\w+ = )", statement.hints) if statement.hints else ():
        if not hint.startswith(_HINTS):
            yield _fault("construct", f"{hint!r} is no hint that a candidate may give", hint)
        if "Chip" in _ONE_CHIP.sub("", hint):
            yield _fault("layout", "an operation is not divided among chips: there is one", hint)


def _fused(fused: Fused, name: str) -> Iterator[Diagnostic]:
    if fused.n_contractions > 1:
        yield _fault("contraction", "one fused operation contracts once", name)
    for item in (item for operand in fused.reads for item in operand.items):
        if item.keyword not in _READ_ITEMS:
            yield _fault("construct", f"'{item}' is nothing that a read may do", name)


def _chain(function: Function) -> Iterator[Diagnostic]:
    longest = longest_chain(function)
    if longest.length > MAX_VECTOR_OPERATIONS:
        most = f"at most {MAX_VECTOR_OPERATIONS} vector operations follow each other"
        yield _fault("chain", f"{most}; here {longest.length} do", longest.end)


def _loop(loop: Loop) -> Iterator[Diagnostic]:
    head = loop.head
    for item in loop.settings:
        if item.keyword not in _SETTINGS:
            yield _fault("loop", f"'{item.keyword}' is no setting that a candidate may give", head)
        elif not item.text.isdecimal():
            yield _fault("loop", f"'{item.keyword}' is a number", head)
        elif item.keyword == "unroll" and not 1 <= int(item.text) <= MAX_UNROLL:
            yield _fault("loop", f"a loop is unrolled at most {MAX_UNROLL} times", head)
    if not isinstance(loop.limit, int) or loop.limit < 1:
        yield _fault("loop", "a loop runs a known number of times", head)


def _types(function: Function) -> Iterator[Diagnostic]:
    sizes = axis_sizes(function)
    for name, kind in types(function).items():
        if kind.dtype not in BITS:
            yield _fault("dtype", f"{kind.dtype} is no format that the chip computes with", name)
        for axis in kind.axes:
            if axis not in sizes:
                yield _fault("axis", f"the axis {axis!r} of {name!r} is not declared", kind)


def _names(function: Function) -> Iterator[Diagnostic]:
    """The account of memory and the schedule know a tensor by its name alone."""
    known: set[str] = set()
    for tensor in tensors(function):
        if tensor.name in known:
            yield _fault("name", f"two tensors are named {tensor.name!r}", tensor)
        known.add(tensor.name)


def _writes(task: Task, function: Function) -> Iterator[Diagnostic]:
    """A parameter that is no result may not be written, by whatever name or view."""
    fixed = [parameter.name for parameter in task.parameters if not parameter.mutable]
    for target, statement in writes(function, fixed):
        yield _fault("mutation", f"{target!r} may not be written", statement)
