"""``kernelwright log cat``: the records, one a line."""

from argparse import Namespace
from itertools import takewhile

from events.log import read
from scripts.records.kinds import check_known
from scripts.records.lines import as_json, as_text


def main(args: Namespace) -> int:
    """Print the records asked for; damage further on ends it with an error."""
    kinds = frozenset(args.kind or ())
    check_known(kinds)
    worded = as_json if args.as_json else as_text
    for record in takewhile(lambda r: args.until is None or r.seq <= args.until, read(args.run)):
        if record.seq >= args.since and (not kinds or record.event.kind in kinds):
            print(worded(record))
    return 0
