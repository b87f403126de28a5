"""Chains of vector operations: what one tensor operation of the chip does with a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Number = int | float
Start = Literal["fetch", "look up", "contract", "integers"]
"""How a chain's value comes in: as it is (widened to f32), through a table, from the dot product
engine, or as integers."""


@dataclass(frozen=True)
class Step:
    """One vector operation: ``into = do(of, operand)``."""

    do: str
    """As ``operation`` names it; "sum" sums over axes, "reciprocal" divides 1 by the value."""
    operand: str | Number | tuple[str, ...] | None = None
    """A tensor of the kernel, a value of this chain, a number, or the axes of a sum."""
    into: str = "value"
    of: str = "value"


@dataclass(frozen=True)
class Chain:
    """A start and the operations after it."""

    start: Start
    inputs: tuple[str, ...]
    """Tensors that the start takes: the main input first, then a table or the other factor."""
    steps: tuple[Step, ...]
    to: tuple[str, ...] = ()
    """Axes that a contraction leaves."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """Tensors of the kernel that the chain reads, each once, in order."""
        known = {step.into for step in self.steps} | {"value"}
        operands = [s.operand for s in self.steps if isinstance(s.operand, str)]
        read = (*self.inputs, *(name for name in operands if name not in known))
        return tuple(dict.fromkeys(read))

    @property
    def summed(self) -> tuple[str, ...]:
        """Axes that its sum, if it has one, goes over."""
        sums = (step.operand for step in self.steps if step.do == "sum")
        return next((axes for axes in sums if isinstance(axes, tuple)), ())


GELU = (
    Step("mulf", 0.7071067811865476, into="raised"),
    Step("erf", into="raised", of="raised"),
    Step("addf", 1.0, into="raised", of="raised"),
    Step("mulf", "value", into="value", of="raised"),
    Step("mulf", 0.5),
)
"""The erf form."""

POWER_OF_TWO = (Step("bit_andi", 255), Step("shl", 23), Step("reinterpret_as_float"))
"""From the code of a block's exponent to its value, both as bits."""


def operation_text(chain: Chain, narrow: bool, parameters: Sequence[str]) -> str:
    """Return the body of a tensor operation, a line each, without its header.

    Args:
        chain: what it does.
        narrow: its output is bf16, not f32.
        parameters: names for the chain's tensors, in their order.
    """
    names = dict(zip(chain.tensors, parameters, strict=True))
    lines = [*_start_lines(chain, names), *(_line(step, names) for step in chain.steps)]
    lines.append(f"return commit{'.typecast(value, tcl.bf16)' if narrow else '(value)'}")
    return "".join(f"    {line}\n" for line in lines)


def _start_lines(chain: Chain, names: dict[str, str]) -> Iterator[str]:
    first, *others = (names[name] for name in chain.inputs)
    match chain.start:
        case "fetch":
            yield f"value = fetch.typecast({first}, tcl.f32)"
        case "integers":
            yield f"value = fetch.typecast({first}, tcl.i32)"
        case "look up":
            yield f"value = fetch.typecast(fetch.table_lookup({first}, {others[0]}), tcl.f32)"
        case "contract":
            yield f"value = operation.contract({first}, {others[0]}, to=to)"


def _line(step: Step, names: dict[str, str]) -> str:
    match step.do:
        case "sum":
            call = f"operation.reduce({step.of}, axes=axes, op=tcl.Addf)"
        case "reciprocal":
            call = f"operation.divf(1.0, {step.of})"
        case _ if step.operand is None:
            call = f"operation.{step.do}({step.of})"
        case _:
            operand = step.operand
            text = names.get(operand, operand) if isinstance(operand, str) else repr(operand)
            call = f"operation.{step.do}({step.of}, {text})"
    return f"{step.into} = {call}"
