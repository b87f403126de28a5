"""A static schedule, read from the JSON that a compiler dumps; what is in it may be garbage.

The dumps of different compilers share field names, not all fields. Only what a profile needs is
read: a number may be written as text, a tensor may be missing, and sizes may be placeholders.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import BaseModel, Field, ValidationError, model_validator

from targets.profiler.spans import Span

DMA: Final = "DmaEngine"
NOOP: Final = "Noop"
DRAM: Final = frozenset({"Dram", "Hbm", "Spm"})
"""Buffers that are not on chip."""
MAX_NAME: Final = 80
"""Characters of a name that are kept."""

Count = Annotated[int, Field(ge=0, le=2**53)]
BytesOf = Callable[["Operation"], int | None]
"""Bytes that a transfer moves, None if nobody knows."""


class ScheduleError(ValueError):
    """The bytes are no schedule; the text says where they are wrong."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction of a schedule; times in cycles from the launch."""

    name: str
    """Of the tensor it makes, as in the source; else its place there."""
    kind: str
    contexts: tuple[str, ...]
    """Engines that it keeps busy."""
    begin: int
    end: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Numbers of tensors."""
    n_bytes: int | None = None
    """That a transfer moves."""

    @property
    def cycles(self) -> int:
        """How long it takes."""
        return self.end - self.begin

    @property
    def is_transfer(self) -> bool:
        """Whether it moves bytes between memories, rather than waiting or computing."""
        return DMA in self.contexts and self.cycles > 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor on chip."""

    number: int
    name: str
    """As the compiler gave it: any text."""
    memory: str
    size: int | None
    """Bytes by the dump, which may have a placeholder there."""
    spans: tuple[Span, ...]
    """When it is alive: one that a loop writes anew lives several times."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor on chip while it is alive; one that a loop writes anew lives several times."""

    name: str
    memory: str
    n_bytes: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it was dumped."""

    title: str
    operations: tuple[Operation, ...]
    """By begin, then by end."""
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    """Empty if the dump has placeholders for sizes, and nobody said better."""

    @property
    def makespan(self) -> int:
        """Greatest end."""
        return max(operation.end for operation in self.operations)


def linear(setup_cycles: int, bytes_per_cycle: float) -> BytesOf:
    """Return the rule for transfers that take ``setup_cycles + bytes / bytes_per_cycle``."""

    def bytes_of(transfer: Operation) -> int | None:
        return max(0, round((transfer.cycles - setup_cycles) * bytes_per_cycle))

    return bytes_of


def read(
    dump: bytes | str, *, bytes_of: BytesOf | None = None, sizes: Mapping[str, int] | None = None
) -> Schedule:
    """Read a dump.

    Args:
        dump: JSON.
        bytes_of: for a target whose dump does not say what its transfers move.
        sizes: bytes by name of tensor, for a target whose dump has placeholders.

    Raises:
        ScheduleError: it is no JSON, or no schedule.
    """
    try:
        parsed = _Dump.model_validate_json(dump)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ScheduleError(f"no schedule: {place}: {first['msg']}") from error
    tensors = {tensor.index: tensor for tensor in parsed.tensors}
    made = (_operation(instruction, tensors) for instruction in parsed.instructions)
    operations = tuple(sorted(made, key=lambda o: (o.begin, o.end)))
    if bytes_of is not None:
        operations = tuple(
            replace(o, n_bytes=bytes_of(o)) if o.is_transfer else o for o in operations
        )
    on_chip = tuple(_on_chip(parsed, operations))
    known = sizes if sizes is not None or not _are_placeholders(parsed) else {}
    return Schedule(_clean(parsed.title), operations, on_chip, tuple(_buffers(on_chip, known)))


class _Lifetime(BaseModel):
    begin: Count
    end: Count

    @model_validator(mode="after")
    def _runs_forward(self) -> "_Lifetime":
        if self.end < self.begin:
            raise ValueError(f"it ends at {self.end}, before it begins at {self.begin}")
        return self


class _Instruction(BaseModel):
    index: int | str
    """A number, or a place in a loop, such as 5[0].1."""
    tpe: str = ""
    contexts: tuple[str, ...] = ()
    lifetime: _Lifetime
    description: str = ""
    input_tensors: tuple[int, ...] = ()
    output_tensors: tuple[int, ...] = ()
    bytes: Count | None = None


class _Tensor(BaseModel):
    index: int
    name: str = ""
    buffer_type: str = ""
    size: Count | None = None
    shape: object = None
    lifetime: _Lifetime | None = None


class _Dump(BaseModel):
    title: str = ""
    instructions: tuple[_Instruction, ...] = Field(min_length=1)
    tensors: tuple[_Tensor, ...] = ()


def _operation(instruction: _Instruction, tensors: Mapping[int, _Tensor]) -> Operation:
    return Operation(
        name=_name(instruction, tensors),
        kind=_kind(instruction),
        contexts=tuple(_clean(context) for context in instruction.contexts),
        begin=instruction.lifetime.begin,
        end=instruction.lifetime.end,
        inputs=instruction.input_tensors,
        outputs=instruction.output_tensors,
        n_bytes=instruction.bytes,
    )


def _name(instruction: _Instruction, tensors: Mapping[int, _Tensor]) -> str:
    for number in (*instruction.output_tensors, *instruction.input_tensors):
        if number in tensors and tensors[number].name:
            return _clean(tensors[number].name)
    place = re.search(r"--> *(\S+)", instruction.description)
    return _clean(place[1] if place else f"instruction {instruction.index}")


def _kind(instruction: _Instruction) -> str:
    """The description's own word for it, where it has one: some dumps give all the same type."""
    named = re.search(r"^name: (\S+)", instruction.description, re.MULTILINE)
    return _clean(named[1] if named else instruction.tpe)


def _clean(text: str) -> str:
    """Make a text of the dump fit for a terminal, a prompt and a picture."""
    shown = text[:MAX_NAME]
    return shown if shown.isprintable() else "".join(c if c.isprintable() else "?" for c in shown)


def _on_chip(dump: _Dump, operations: Iterable[Operation]) -> Iterator[Tensor]:
    lives = _lives(operations)
    for tensor in dump.tensors:
        if tensor.buffer_type not in DRAM:
            told = tensor.lifetime
            spans = [(told.begin, told.end)] if told else lives.get(tensor.index, [])
            yield Tensor(tensor.index, tensor.name, tensor.buffer_type, tensor.size, tuple(spans))


def _buffers(tensors: Iterable[Tensor], sizes: Mapping[str, int] | None) -> Iterator[Buffer]:
    for tensor in tensors:
        n_bytes = tensor.size if sizes is None else sizes.get(tensor.name)
        if n_bytes:
            name, memory = _clean(tensor.name), _clean(tensor.memory)
            yield from (Buffer(name, memory, n_bytes, *span) for span in tensor.spans)


def _are_placeholders(dump: _Dump) -> bool:
    """Whether every tensor has the same size and shape, which no kernel's tensors have."""
    found = [(t.size, str(t.shape)) for t in dump.tensors if t.buffer_type not in DRAM]
    return len(found) > 2 and len(set(found)) == 1


def _lives(operations: Iterable[Operation]) -> dict[int, list[Span]]:
    """When each tensor is alive: from a write to the last read before it is written anew."""
    lives: dict[int, list[Span]] = {}
    read_since: set[int] = set()
    for operation in operations:
        inputs = frozenset(operation.inputs)
        for number in (*operation.inputs, *operation.outputs):
            spans = lives.setdefault(number, [(operation.begin, operation.end)])
            begin, end = spans[-1]
            if number in inputs:
                read_since.add(number)
            elif number in read_since and operation.begin >= end:
                read_since.remove(number)
                spans.append((operation.begin, operation.end))
                continue
            spans[-1] = begin, max(end, operation.end)
    return lives
