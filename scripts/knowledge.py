"""List what a run believes of its target; export it, or import it into a campaign."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from events.projections.state import replay
from scripts import carrying
from scripts.plain import one_line
from scripts.reporting.beliefs import STATES, TOPICS, Belief, beliefs
from scripts.reporting.history import Run
from scripts.runs import recorded, without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """List, export or import; return 0."""
    words = list(sys.argv[1:] if argv is None else argv)
    match words[:1]:
        case ["export"]:
            return carrying.export(words[1:])
        case ["import"]:
            return carrying.import_(words[1:])
        case _:
            return _list(words)


def _list(argv: Sequence[str]) -> int:
    args = _parser().parse_args(argv)
    records, head = recorded(args.run)
    every = beliefs(Run(tuple(records), replay(records), head))
    found = [belief for belief in every if _is_wanted(belief, args)]
    if args.as_json:
        print(json.dumps([_table(belief) for belief in found]))
        return 0
    for belief in found:
        print("\n".join(_lines(belief)))
    print(f"{len(found)} of {len(every)} facts")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelwright knowledge",
        description=__doc__,
        usage="%(prog)s RUN [--kind K] [--state S] [--kernel K] [--toolchain D] [--json]\n"
        "       %(prog)s export RUN FILE\n"
        "       %(prog)s import FILE CAMPAIGN.toml",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--kind", choices=TOPICS, metavar="K", help=", ".join(TOPICS))
    parser.add_argument("--state", choices=STATES, metavar="S", help=", ".join(STATES))
    parser.add_argument("--kernel", metavar="K", help="of this kernel, or of the whole target")
    parser.add_argument(
        "--toolchain", metavar="D", help="checked under the one whose digest begins so"
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return parser


def _is_wanted(belief: Belief, args: argparse.Namespace) -> bool:
    fact = belief.fact
    return (
        args.kind in (None, fact.topic)
        and args.state in (None, belief.state)
        and (args.kernel is None or fact.kernel in ("", args.kernel))
        and (args.toolchain is None or belief.toolchain.startswith(args.toolchain.lower()))
    )


def _lines(belief: Belief) -> list[str]:
    fact = belief.fact
    about = [f"f{belief.number}", belief.state, fact.topic, fact.kernel or "the whole target"]
    under = f"toolchain {belief.toolchain[:12]}" if belief.toolchain else "no toolchain"
    evidence = ", ".join(f"#{seq}" for seq in belief.evidence)
    notes = [under, f"records {evidence}", f"cited by {len(belief.cited_by)}"]
    notes += [belief.refusals, belief.reason]
    return [
        "  ".join(about),
        f"    {one_line(fact.claim)}",
        f"    {one_line('; '.join(filter(None, notes)))}",
    ]


def _table(belief: Belief) -> dict[str, Any]:
    fact = belief.fact
    return {
        "fact": belief.number,
        "state": belief.state,
        "kind": fact.topic,
        "kernel": fact.kernel,
        "claim": fact.claim,
        "reason": belief.reason,
        "toolchain": belief.toolchain,
        "records": belief.evidence,
        "cited_by": belief.cited_by,
        "hits": belief.refusals,
        "author": belief.author,
    }
