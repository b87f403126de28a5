"""``kernelwright log tail``: the last records of a run, and those that its writer appends."""

import sys
import time
from argparse import Namespace
from collections import deque
from contextlib import suppress

from events.tail import Tail
from scripts.records.lines import as_text
from scripts.runs import UsageError

POLL_S = 0.2


def main(args: Namespace) -> int:
    """Print until Ctrl-C if asked to follow; the run's lock is not taken."""
    if args.n < 0:
        raise UsageError("-n takes a number of records, 0 or more")
    tail = Tail(args.run)
    for record in deque(tail.fresh(), maxlen=min(args.n, sys.maxsize)):
        print(as_text(record), flush=args.follow)
    with suppress(KeyboardInterrupt):
        while args.follow:
            time.sleep(POLL_S)
            for record in tail.fresh():
                print(as_text(record), flush=True)
    return 0
