"""What the subcommands share: run folders, the target's lease file, errors without tracebacks."""

import errno
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

from events.campaign import Campaign
from events.errors import LogBusyError, LogError, LogMissingError
from events.log import read_all
from events.projections.state import State
from events.vocabulary import Record, RunStarted
from scripts.campaign_file import CampaignError
from scripts.files import FileError
from scripts.plain import one_line, visible
from targets.protocol import TargetError, TruthKnown
from targets.registry import load_target

FAILED = 1
USAGE = 2
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

UNTRUSTED = 3
"""The run finished because a control failed: the harness is broken, and no speed-up is claimed."""

Main = Callable[[Sequence[str] | None], int]


class UsageError(Exception):
    """Something that cannot be done as asked.

    Attributes:
        reason: why not, and what to do instead.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def without_traceback(main: Main) -> Main:
    """Turn what a user or a machine can do wrong into one line and an exit status."""

    @wraps(main)
    def plain(argv: Sequence[str] | None) -> int:
        try:
            return main(argv)
        except LogBusyError as e:
            print(f"refused: {e.path.parent} is being run by {e.owner}", file=sys.stderr)
            return USAGE
        except (CampaignError, TargetError, UsageError, FileError, LogMissingError) as e:
            return _say(e, USAGE)
        except LogError as e:
            return _say(e, FAILED)
        except OSError as e:
            is_disk = e.errno in DISK_ERRORS
            if e.filename is None and not is_disk:
                raise
            where = "" if e.filename is None else f"{os.fsdecode(e.filename)}: "
            return _say(f"{where}{e.strerror}", FAILED if is_disk else USAGE)

    return plain


def _say(problem: object, status: int) -> int:
    print(visible(f"kernelwright: {problem}"), file=sys.stderr)
    return status


def recorded(run: Path) -> tuple[list[Record], str]:
    """Read a whole run, verifying it; return its records and the chain hash over them, hex.

    Raises:
        UsageError: it stopped before its first event.
        LogError: there is no log, or it is damaged.
    """
    records, head = read_all(run)
    if not any(isinstance(record.event, RunStarted) for record in records):
        reason = (
            f"{run} stopped before its first event; `kernelwright run CAMPAIGN.toml --out {run}`"
        )
        raise UsageError(f"{reason} starts it")
    return records, head


def new_folder(name: str, parent: Path) -> Path:
    """Make the next free folder ``<name>-<n>`` under ``parent``; no other process gets it."""
    parent.mkdir(parents=True, exist_ok=True)
    pattern = re.compile(re.escape(name) + r"-(\d+)")
    taken = [int(m[1]) for p in parent.iterdir() if (m := pattern.fullmatch(p.name))]
    number = max(taken, default=0) + 1
    while True:
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def lease_file(target: str) -> Path:
    """The lock of a target's device, shared by all campaigns of this user on this machine."""
    return Path(tempfile.gettempdir()) / f"kernelwright-{os.getuid()}" / f"{target}.lease"


def truth_of(campaign: Campaign) -> TruthKnown | None:
    """The target of a campaign, if it knows the truth and can be used here."""
    try:
        target = load_target(campaign.target, campaign.preset)
    except TargetError:
        return None
    return target if isinstance(target, TruthKnown) else None


def result_lines(state: State, run: Path, head: str) -> list[str]:
    """What a run has to say for itself at its end, or where it stopped."""
    lines = [_kernel_line(state, kernel) for kernel in state.tree.branches]
    finished = state.finished
    if finished is not None and finished.geomean is not None:
        lines.append(f"geomean {finished.geomean:.3f}x ({one_line(finished.reason)})")
    elif finished is not None:
        lines.append(f"geomean none: {one_line(finished.reason)}; no speed-up is claimed")
    lines += [
        f"run folder: {run}",
        f"report: kernelwright report {run}",
        f"audit: kernelwright audit {run}",
        f"head: {head}",
    ]
    return lines


def _kernel_line(state: State, kernel: str) -> str:
    branch = state.tree.branches[kernel]
    final = branch.finished
    if final is None:
        best = f"c{branch.incumbent}" if branch.incumbent else "none"
        speedup = state.tree.speedup(branch.incumbent) if branch.incumbent else 1.0
        return f"{kernel}  not finished: accepted so far {speedup:.2f}x  best {best}"
    bound = "-" if final.time_over_bound is None else f"{final.time_over_bound:.2f}"
    return (
        f"{kernel}  speed-up {final.speedup:.2f}x ({final.low:.2f}..{final.high:.2f})  "
        f"time/bound {bound}  best c{final.best}  "
        f"(accepts claimed {state.tree.speedup(final.best):.2f}x)"
    )
