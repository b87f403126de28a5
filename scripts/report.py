"""``kernelwright report``: one self-contained page on a run."""

import argparse
import sys
from pathlib import Path

from events.blobs import Blobs
from events.errors import LogError
from scripts.reporting.history import load
from scripts.reporting.page import render


def main(argv: list[str] | None = None) -> int:
    """Write the report of a run; return the exit status."""
    parser = argparse.ArgumentParser(prog="kernelwright report", description=__doc__)
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: RUN/report.html)"
    )
    args = parser.parse_args(argv)
    out: Path = args.out or args.run / "report.html"
    try:
        run = load(args.run)
        page = render(run, Blobs(args.run))
        out.write_text(page, "utf-8")
    except (LogError, OSError) as e:
        print(f"kernelwright report: {e}", file=sys.stderr)
        return 2
    n_kernels = len(run.kernels)
    print(f"wrote {out}: {n_kernels} kernels, {len(run.records)} records, head {run.head[:12]}")
    return 0
