"""Re-derive every decision of a run from the recorded evidence, and show the evidence.

Exit status 0 if all of it is supported, 1 if something is not or the record is damaged.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from decisions.audit import Finding, audit
from events.blobs import Blobs
from events.errors import LogError
from events.projections.state import State, replay
from events.projections.tree import Status
from events.vocabulary import Record
from scripts.dossier import dossier, trails
from scripts.plain import one_line
from scripts.runs import FAILED, UsageError, recorded, without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="kernelwright audit", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    what = "show the evidence of a kernel's accepts, or of one candidate (c17)"
    parser.add_argument("subject", nargs="?", help=what)
    parser.add_argument("--all", action="store_true", help="show the evidence of every accept")
    parser.add_argument("--json", action="store_true", help="findings as one JSON object")
    args = parser.parse_args(argv)
    records, head = recorded(args.run)
    blobs = Blobs(args.run)
    findings = list(audit(records, blobs.get, LogError))
    if args.json:
        print(json.dumps(_as_json(args.run, records, head, findings)))
        return FAILED if findings else 0
    for finding in findings:
        print(one_line(str(finding)), file=sys.stderr)
    state = replay(records)
    _show(_subjects(state, args.subject, everything=args.all), records, state, blobs)
    _conclude(records, state, findings)
    print(f"head {head}")
    return FAILED if findings else 0


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
    number = re.fullmatch(r"c?(\d+)", subject)
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
            for line in dossier(candidate, by_candidate[candidate], state, blobs):
                print(line)
        except LogError as error:
            print(f"c{candidate}: {error}", file=sys.stderr)


def _conclude(records: list[Record], state: State, findings: list[Finding]) -> None:
    n_accepts = sum(len(branch.accepts) for branch in state.tree.branches.values())
    verdict = f"{len(findings)} PROBLEMS" if findings else "every record is supported"
    counts = f"{len(records)} records, {len(state.tree.nodes)} candidates, {n_accepts} accepts"
    print(f"{counts}: {verdict}")


def _as_json(
    run: Path, records: list[Record], head: str, findings: list[Finding]
) -> dict[str, object]:
    return {
        "run": str(run),
        "records": len(records),
        "head": head,
        "supported": not findings,
        "findings": [{"seq": f.seq, "kind": f.kind, "problem": f.problem} for f in findings],
    }
