"""List the prompts of the roles, and show what a role of a run would be told now."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from actors.commands import command
from actors.roles import prompt_of
from decisions.turns import TASKS
from events.blobs import Blobs
from events.campaign import ROLES, RoleName
from events.projections.state import State, replay
from events.vocabulary import Record, Spend, Task, TurnAssigned
from prompts.render import TEMPLATES, header
from scripts.plain import visible
from scripts.runs import UsageError, recorded, without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """List or show; return 0."""
    args = _parser().parse_args(argv)
    if args.what == "list":
        print("\n\n".join(f"prompts/{name}.md\n{header(name)}" for name in TEMPLATES))
        return 0
    records, _ = recorded(args.run)
    state = replay(records)
    turn = _turn(state, records, _kernel(state, args.kernel), _task(args.role, args.task))
    asked = command(state, state.seq, state.seq, turn, Blobs(args.run))
    print(visible(prompt_of(asked, state.toolchain).text), end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright prompts", description=__doc__)
    whats = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    whats.add_parser("list", help="each template: its role, task, inputs and output")
    show = whats.add_parser("show", help="the prompt that a role would get now")
    show.add_argument("role", choices=ROLES, metavar="ROLE", help=", ".join(ROLES))
    show.add_argument("--run", type=Path, required=True, metavar="RUN", help="run folder")
    show.add_argument("--kernel", metavar="K", help="needed where the run has several")
    show.add_argument("--task", metavar="T", help="for a role that has several")
    return parser


def _kernel(state: State, kernel: str | None) -> str:
    kernels = state.begun.campaign.kernels
    if kernel is None and len(kernels) == 1:
        kernel = kernels[0]
    if kernel is None or kernel not in kernels:
        raise UsageError(f"name a kernel of the run with --kernel: {', '.join(kernels)}")
    if kernel not in state.tree.branches or state.tree.branches[kernel].incumbent is None:
        raise UsageError(f"{kernel} has no best version yet, so nobody is asked about it")
    return kernel


def _task(role: RoleName, task: str | None) -> Task:
    tasks = [known for known, owner in TASKS.items() if owner == role]
    if task is not None and task not in tasks:
        raise UsageError(f"the {role} has no task {task!r}; it has: {', '.join(tasks)}")
    return next(known for known in tasks if task in (None, known))


def _turn(state: State, records: Sequence[Record], kernel: str, task: Task) -> TurnAssigned:
    """A turn that the role might get now: with the plan and the draft of its last one.

    Raises:
        UsageError: it works on what others write, and they have not written any.
    """
    best, number = state.tree.incumbent(kernel).candidate, state.desk.n_turns + 1
    for record in reversed(records):
        last = record.event
        if isinstance(last, TurnAssigned) and (last.kernel, last.task) == (kernel, task):
            return last.model_copy(update={"parent": best, "complaint": None, "previous": None})
    if task in ("implement", "review"):
        raise UsageError(f"nobody has written anything to {task} for {kernel} yet")
    return TurnAssigned(
        turn=number,
        kernel=kernel,
        role=TASKS[task],
        task=task,
        nth=state.desk.of(kernel).asked.get(task, 0) + 1,
        model=state.begun.campaign.roles.of(TASKS[task])[0],
        parent=best,
        thread=number,
        reserved=Spend(),
        reasons="to be shown",
    )
