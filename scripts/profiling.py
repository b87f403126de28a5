"""Say where the time of a schedule goes that a compiler has dumped as JSON."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from scripts.files import check_free, read_file, write
from scripts.runs import UsageError, without_traceback
from targets.profiler.breakdown import profile
from targets.profiler.schedule import ScheduleError, linear, read
from targets.profiler.text import text
from targets.profiler.timeline import DRAWN, svg

MAX_BYTES = 256 << 20
"""Of a dump."""
MAX_RATE = 2**53
"""Cycles and bytes per cycle: no compiler's figures are greater."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = _parser().parse_args(argv)
    rule = linear(args.setup_cycles, args.bytes_per_cycle) if args.bytes_per_cycle else None
    try:
        found = profile(read(read_file(args.schedule, MAX_BYTES), bytes_of=rule))
    except ScheduleError as e:
        raise UsageError(f"{args.schedule}: {e}") from e
    if args.svg:
        check_free(args.svg, DRAWN)
        write(args.svg, svg(found).encode())
    print(text(found), end="")
    return 0


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate <= MAX_RATE:
        raise argparse.ArgumentTypeError("give a number above 0, of bytes per cycle")
    return rate


def _cycles(text: str) -> int:
    cycles = int(text)
    if not 0 <= cycles <= MAX_RATE:
        raise argparse.ArgumentTypeError("give a number of cycles, 0 or more")
    return cycles


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright profile", description=__doc__)
    parser.add_argument("schedule", type=Path, metavar="SCHEDULE", help="the dump, a JSON file")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a timeline picture too")
    parser.add_argument(
        "--bytes-per-cycle",
        type=_rate,
        metavar="RATE",
        help="of transfers, where the dump does not say how many bytes they move",
    )
    parser.add_argument(
        "--setup-cycles",
        type=_cycles,
        default=0,
        metavar="N",
        help="that each transfer takes besides (default 0)",
    )
    return parser
