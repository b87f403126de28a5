"""Re-derive every decision of a run from the recorded evidence, and show the evidence.

Exit status 0 if all of it is supported, 1 if something is not or the record is damaged, 2 if it
cannot be done as asked, 3 if nothing contradicts the record but some of it cannot be derived here:
evidence was pruned, rules or a toolchain of another version are not at hand.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pydantic_core import to_json

from decisions.audit import Finding, audit
from events.blobs import Blobs
from events.errors import LogError
from events.projections.state import State, replay
from events.projections.tree import Status
from events.pruned import KnownBlobs
from events.vocabulary import Record
from scripts.dossier import dossier, trails
from scripts.findings import as_values, told, verdict
from scripts.plain import one_line
from scripts.readings import stand_in
from scripts.rebuild import Bench
from scripts.runs import FAILED, UsageError, recorded, without_traceback
from targets.registry import load_target

NOT_DERIVABLE = 3
"""Nothing contradicts the record, but some of it cannot be derived with what is at hand."""

RECENT = 64
"""Blobs that need not be read again: a reply's are looked at twice, a parent's by each child."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = _parser().parse_args(argv)
    records, head = recorded(args.run)
    blobs = KnownBlobs.of(args.run, records)
    findings = list(audit(records, lru_cache(RECENT)(blobs.get), LogError))
    if not args.json:
        for line in told(findings):
            print(line, file=sys.stderr)
    state = replay(records)
    bench = _bench(records, state, blobs) if args.rebuild else None
    rebuilt = tuple(bench.rebuild()) if bench else ()
    findings += [finding for one in rebuilt for finding in one.findings()]
    if args.json:
        about = {"run": str(args.run), "head": head, **as_values(records, findings)}
        if bench:
            about |= {"fresh_seeds": bench.fresh, "rebuilt": rebuilt}
        print(to_json(about).decode())
        return _status(findings)
    _show(_subjects(state, args.subject, everything=args.all), records, state, blobs)
    for one in rebuilt:
        print(one_line(str(one)))
    if bench:
        print(f"seeds of the fresh fixtures: {', '.join(map(str, bench.fresh))}")
    n_accepts = sum(len(branch.accepts) for branch in state.tree.branches.values())
    counts = f"{len(records)} records, {len(state.tree.nodes)} candidates, {n_accepts} accepts"
    print(f"{counts}: {verdict(findings)}")
    if device := stand_in(state.toolchain):
        print(f"readings: {device}")
    print(f"head {head}")
    return _status(findings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright audit", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    what = "show the evidence of a kernel's accepts, or of one candidate (c17)"
    parser.add_argument("subject", nargs="?", help=what)
    parser.add_argument("--all", action="store_true", help="show the evidence of every accept")
    what = "build and check the accepted versions again, with the toolchain of this machine"
    parser.add_argument("--rebuild", action="store_true", help=what)
    parser.add_argument("--json", action="store_true", help="findings as one JSON object")
    return parser


def _bench(records: list[Record], state: State, blobs: Blobs) -> Bench:
    """Where the run's versions are built again.

    Raises:
        TargetError: the target cannot be used here; it says what is missing.
    """
    campaign = state.begun.campaign
    return Bench.of(records, state, blobs, load_target(campaign.target, campaign.preset))


def _status(findings: list[Finding]) -> int:
    if any(finding.sort == "unsupported" for finding in findings):
        return FAILED
    return NOT_DERIVABLE if findings else 0


def _subjects(state: State, subject: str | None, *, everything: bool) -> list[int]:
    """Numbers of the candidates whose evidence is wanted.

    Raises:
        UsageError: there is no such kernel or candidate.
    """
    accepts = [n.candidate for n in state.tree.nodes.values() if n.status is Status.ACCEPTED]
    if subject is None:
        return accepts if everything else []
    if subject in state.tree.branches:
        return [c for c in accepts if state.tree.nodes[c].kernel == subject]
    number = re.fullmatch(r"c?([1-9]\d{0,17})", subject)
    if number and int(number[1]) in state.tree.nodes:
        return [int(number[1])]
    kernels = ", ".join(state.tree.branches)
    raise UsageError(
        f"no kernel or candidate {subject!r}; kernels: {kernels}; "
        f"candidates: c1 to c{len(state.tree.nodes)}"
    )


def _show(subjects: list[int], records: list[Record], state: State, blobs: Blobs) -> None:
    by_candidate = trails(records)
    for candidate in subjects:
        try:
            trail, whole = by_candidate[candidate], len(subjects) == 1
            for line in dossier(candidate, trail, state, blobs, whole=whole):
                print(line)
        except LogError as error:
            print(f"c{candidate}: {error}", file=sys.stderr)
