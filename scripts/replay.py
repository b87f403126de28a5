"""Fold a run's log offline, check the digests that it recorded, and show the state."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from decisions.counterfactual import Trial, redecide
from decisions.policy import IN_FORCE
from events.log import read
from events.projections.state import State
from events.vocabulary import Record, RunResumed, RunStarted, StateDigested
from scripts.campaign_file import load_policy
from scripts.progress import hms
from scripts.runs import FAILED, UsageError, without_traceback


class Replayed(NamedTuple):
    """A folded log."""

    state: State
    n_digests: int
    """Digests that were recorded and agree."""
    n_foreign: int
    """Digests by another version of the fold, which nobody can compare here."""
    differs: tuple[int, str, str] | None
    """Record, recorded digest and ours, of the first digest that differs."""


def fold(records: Iterable[Record]) -> Replayed:
    """Fold records; each digest is of the state before its record. Stop at one that differs."""
    state, n_digests, n_foreign, version = State(), 0, 0, None
    for record in records:
        if isinstance(record.event, RunStarted | RunResumed):
            version = record.event.rules.get("digest")
        if isinstance(record.event, StateDigested):
            if version != IN_FORCE["digest"]:
                n_foreign += 1
            elif (ours := state.digest()) != record.event.digest:
                differs = (record.seq, record.event.digest, ours)
                return Replayed(state, n_digests, n_foreign, differs)
            else:
                n_digests += 1
        state.apply(record)
    return Replayed(state, n_digests, n_foreign, None)


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Replay; return 0, or 1 if a digest differs or the log is damaged."""
    args = _parser().parse_args(argv)
    replayed = fold(_records(args.run, args.until))
    if replayed.differs is not None:
        seq, recorded, ours = replayed.differs
        print(
            f"{args.run}: the state before record {seq} has the digest {ours}, but the run "
            f"recorded {recorded}: this version of kernelwright reads the log in another way",
            file=sys.stderr,
        )
        return FAILED
    if replayed.state.start is None:
        raise UsageError(f"{args.run}: no first event in the records asked for")
    if args.policy is not None:
        trials = redecide(_records(args.run, args.until), load_policy(args.policy))
        told = [asdict(trial) for trial in trials]
        print(json.dumps(told) if args.as_json else "\n".join(_compared(trials)))
        return 0
    about = summary(replayed)
    print(json.dumps(about) if args.as_json else _text(about))
    return 0


def _records(run: Path, until: int | None) -> Iterator[Record]:
    return takewhile(lambda record: until is None or record.seq <= until, read(run))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright replay", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--until", type=int, metavar="SEQ", help="stop after this record")
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="decide again under this [acceptance] table"
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return parser


def _compared(trials: Sequence[Trial]) -> Iterator[str]:
    """Say which accepts another policy changes."""
    for t in trials:
        if t.differs:
            yield (
                f"c{t.candidate} of {t.kernel} against c{t.incumbent}: {t.recorded} after "
                f"{t.n_recorded} pairs, would be {t.other} after {t.n_other}"
            )
    accepted = sum(t.recorded == "accepted" for t in trials)
    other = sum(t.other == "accepted" for t in trials)
    undecided = sum(t.other == "undecided" for t in trials)
    yield (
        f"{len(trials)} comparisons: {accepted} accepted as recorded, {other} under the other "
        f"policy, which would have asked for more pairs of {undecided}"
    )


def summary(replayed: Replayed) -> dict[str, Any]:
    """The state in a few figures."""
    state = replayed.state
    campaign = state.begun.campaign
    return {
        "campaign": campaign.name,
        "target": campaign.target,
        "preset": campaign.preset,
        "records": state.seq + 1,
        "status": _status(state),
        "kernels": {kernel: _kernel(state, kernel) for kernel in state.tree.branches},
        "facts": len(state.knowledge.facts),
        "jobs": state.ledger.jobs,
        "pending": len(state.pending),
        "wall_s": state.spending.wall_s,
        "spent": asdict(state.spending.settled),
        "geomean": state.finished.geomean if state.finished else None,
        "digests_checked": replayed.n_digests,
        "digests_of_other_versions": replayed.n_foreign,
        "digest": state.digest(),
    }


def _status(state: State) -> str:
    if state.finished:
        return f"finished: {state.finished.reason}"
    if state.interrupted:
        return "stopped by the operator"
    if state.paused:
        return "paused by the operator"
    return "unfinished"


def _kernel(state: State, kernel: str) -> dict[str, Any]:
    branch = state.tree.branches[kernel]
    counts = Counter(str(state.tree.nodes[candidate].status) for candidate in branch.nodes)
    best, final = branch.incumbent, branch.finished
    return {
        "best": best,
        "speedup_accepted": state.tree.speedup(best) if best is not None else None,
        "speedup_final": final.speedup if final else None,
        "candidates": dict(counts),
    }


def _text(about: dict[str, Any]) -> str:
    spent = ", ".join(f"{name} {value:.6g}" for name, value in about["spent"].items() if value)
    lines = [
        f"{about['campaign']}: {about['target']}, preset {about['preset']}, {about['status']}",
        f"{about['records']} records, {about['jobs']} device jobs, {about['facts']} facts, "
        f"{about['pending']} requests without a reply",
        *(_kernel_text(kernel, figures) for kernel, figures in about["kernels"].items()),
        f"running for {hms(about['wall_s'])}; spent: {spent or 'nothing'}",
    ]
    if about["geomean"] is not None:
        lines.append(f"geomean {about['geomean']:.3f}x")
    lines.append(f"digest {about['digest']} ({about['digests_checked']} recorded ones agree)")
    if n_foreign := about["digests_of_other_versions"]:
        lines.append(f"{n_foreign} recorded digests are of another version and cannot be compared")
    return "\n".join(lines)


def _kernel_text(kernel: str, figures: dict[str, Any]) -> str:
    counts = ", ".join(f"{n} {status}" for status, n in figures["candidates"].items())
    if figures["best"] is None:
        return f"{kernel}: no best version yet; {counts}"
    speedup = figures["speedup_accepted"]
    return f"{kernel}: best c{figures['best']} at {speedup:.2f}x as accepted; {counts}"
