"""Which designs of an architect's reply are built: those that no earlier candidate was."""

from dataclasses import dataclass

from decisions.repeats import earlier_verdict, is_same
from decisions.room import designs_left, remaining
from events.projections.desk import Thread
from events.projections.state import State
from events.vocabulary import DesignPlan


@dataclass(frozen=True)
class Choice:
    """What becomes of the designs of one reply."""

    design: DesignPlan | None
    """The next one to be built; None if all of them were had before."""
    is_last: bool
    """Whether no other one is built after it."""
    repeats: tuple[str, ...]
    """For the architect: why others are not built."""
    nth: str
    """For people: which of them it is."""


def choose(state: State, thread: Thread, *, by_catalogue: bool) -> Choice:
    """Choose the next design to be built of an architect whose reply waits.

    Args:
        state: of the run.
        thread: the architect's.
        by_catalogue: a catalogue tells its moves apart by their names, so they are not compared.
    """
    designs, repeats, new = thread.designs, [], []
    for number, design in enumerate(designs, start=1):
        repeat = "" if by_catalogue else _repeat(state, thread, number)
        if repeat:
            repeats.append(f"design {number}: {repeat}")
        elif design.plan not in thread.handed_out:
            new.append((number, design))
    if not new:
        return Choice(None, is_last=True, repeats=tuple(repeats), nth="")
    number, design = new[0]
    is_full = designs_left(state, thread.kernel) <= 0 or remaining(state) <= 0
    left_out = f", {len(repeats)} of them repeat earlier ones" if repeats else ""
    if is_full and len(new) > 1:
        left_out += f", no room for {len(new) - 1} of them"
    return Choice(
        design,
        is_last=is_full or len(new) == 1,
        repeats=tuple(repeats),
        nth=f"design {number} of {len(designs)}{left_out}",
    )


def _repeat(state: State, thread: Thread, number: int) -> str:
    hypothesis = thread.designs[number - 1].hypothesis
    for i, other in enumerate(thread.designs[: number - 1], start=1):
        if is_same(hypothesis, other.hypothesis):
            return f"it is design {i} again"
    return earlier_verdict(state, thread, hypothesis)
