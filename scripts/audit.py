"""Re-derive every decision of a run from the recorded evidence, and show the evidence.

Exit status 0 if all of it is supported, 1 if something is not or the record is damaged, 3 if some
of it cannot be checked because blobs were pruned.
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
from events.pruned import KnownBlobs
from events.vocabulary import Record
from scripts.dossier import dossier, trails
from scripts.plain import one_line
from scripts.runs import FAILED, UsageError, recorded, without_traceback

NOT_DERIVABLE = 3
"""Nothing contradicts the record, but evidence was pruned and cannot be looked at."""
N_NAMED = 10
"""Records that a line about pruned evidence names."""


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
    blobs = KnownBlobs.of(args.run, records)
    findings = list(audit(records, blobs.get, LogError))
    if args.json:
        print(json.dumps(_as_json(args.run, records, head, findings)))
        return _status(findings)
    _report(findings)
    state = replay(records)
    _show(_subjects(state, args.subject, everything=args.all), records, state, blobs)
    _conclude(records, state, findings)
    print(f"head {head}")
    return _status(findings)


def _report(findings: list[Finding]) -> None:
    pruned: dict[str, list[int]] = {}
    for finding in findings:
        if finding.sort == "pruned":
            pruned.setdefault(finding.problem, []).append(finding.seq)
        else:
            print(one_line(str(finding)), file=sys.stderr)
    for problem, seqs in pruned.items():
        some = ", ".join(map(str, seqs[:N_NAMED])) + (", ..." if len(seqs) > N_NAMED else "")
        print(f"{len(seqs)} records, {problem}: {some}", file=sys.stderr)


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
            trail, whole = by_candidate[candidate], len(subjects) == 1
            for line in dossier(candidate, trail, state, blobs, whole=whole):
                print(line)
        except LogError as error:
            print(f"c{candidate}: {error}", file=sys.stderr)


def _conclude(records: list[Record], state: State, findings: list[Finding]) -> None:
    n_accepts = sum(len(branch.accepts) for branch in state.tree.branches.values())
    pruned = sorted({f.seq for f in findings if f.sort == "pruned"})
    n_problems = sum(f.sort == "unsupported" for f in findings)
    verdict = f"{n_problems} PROBLEMS" if n_problems else "every record is supported"
    if pruned:
        verdict += f" but for {len(pruned)}, whose evidence was pruned and is not re-derivable"
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
        "findings": [
            {"seq": f.seq, "kind": f.kind, "problem": f.problem, "sort": f.sort} for f in findings
        ],
    }
