"""``kernelwright report``: one self-contained page on a run."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from events.blobs import Blobs
from scripts.reporting.history import load
from scripts.reporting.page import render
from scripts.runs import without_traceback, write


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Write the report of a run; return the exit status."""
    parser = argparse.ArgumentParser(prog="kernelwright report", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: RUN/report.html)"
    )
    args = parser.parse_args(argv)
    out: Path = args.out or args.run / "report.html"
    run = load(args.run)
    write(out, render(run, Blobs(args.run)).encode())
    n_kernels = len(run.kernels)
    print(f"wrote {out}: {n_kernels} kernels, {len(run.records)} records, head {run.head[:12]}")
    return 0
