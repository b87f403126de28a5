"""What a move proposes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sim.npu.syntax import KernelText, LoopText, StatementText, StoreText
from targets.sim.moves.tree import writes


@dataclass(frozen=True)
class Change:
    """One way to apply a move to a kernel."""

    name: str
    """Tells it from all other changes of the same kernel."""
    why: str
    """What it changes and why that may help."""
    make: Callable[[], KernelText]
    """Returns the kernel as changed, before what follows from it is drawn; it may be illegal."""


def ready(kernel: KernelText) -> Callable[[], KernelText]:
    """Return a change's `make` for a kernel that is made already."""
    return lambda: kernel


Move = Callable[[KernelText], Iterator[Change]]
"""Proposes changes of any legal kernel."""


def label(statement: StatementText) -> str:
    """Return what a statement is called: what it writes, which no other statement does."""
    match statement:
        case LoopText(index):
            first = (writes(statement) or ("",))[0]
            return f"{index.text}({first})"
        case StoreText(source, target):
            return f"store({source.text}>{target.name.text})"
        case _:
            return ",".join(writes(statement))
