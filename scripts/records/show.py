"""``kernelwright log cat``: the records, one a line."""

import re
from argparse import Namespace
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from events.evidence import records_about
from events.log import read
from events.vocabulary import Record
from scripts.records.kinds import check_known
from scripts.records.lines import as_json, as_text
from scripts.runs import UsageError


def main(args: Namespace) -> int:
    """Print the records asked for; damage further on ends it with an error."""
    kinds = frozenset(args.kind or ())
    check_known(kinds)
    worded = as_json if args.as_json else as_text
    records = _records(args.run, args.candidate)
    for record in takewhile(lambda r: args.until is None or r.seq <= args.until, records):
        if record.seq >= args.since and (not kinds or record.event.kind in kinds):
            print(worded(record))
    return 0


def _records(run: Path, candidate: str | None) -> Iterable[Record]:
    """All records of a run, or those about one candidate.

    Raises:
        UsageError: there is no such candidate.
    """
    if candidate is None:
        return read(run)
    number = re.fullmatch(r"c?([1-9]\d{0,17})", candidate)
    found = records_about(run, int(number[1])) if number else []
    if not found:
        raise UsageError(f"no candidate {candidate!r} in this run; `kernelwright tree` lists them")
    return found
