"""Say where the time of a schedule goes that a compiler has dumped as JSON."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from targets.profiler.breakdown import profile
from targets.profiler.schedule import ScheduleError, linear, read
from targets.profiler.text import text
from targets.profiler.timeline import svg


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = _parser().parse_args(argv)
    rule = linear(args.setup_cycles, args.bytes_per_cycle) if args.bytes_per_cycle else None
    try:
        found = profile(read(args.schedule.read_bytes(), bytes_of=rule))
        if args.svg:
            args.svg.write_text(svg(found), "utf-8")
    except OSError as error:
        print(f"profile: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except ScheduleError as error:
        print(f"profile: {args.schedule}: {error}", file=sys.stderr)
        return 2
    print(text(found), end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright profile", description=__doc__)
    parser.add_argument("schedule", type=Path, metavar="SCHEDULE", help="the dump, a JSON file")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a timeline picture too")
    parser.add_argument(
        "--bytes-per-cycle",
        type=float,
        metavar="RATE",
        help="of transfers, where the dump does not say how many bytes they move",
    )
    parser.add_argument(
        "--setup-cycles",
        type=int,
        default=0,
        metavar="N",
        help="that each transfer takes besides (default 0)",
    )
    return parser
