"""``kernelwright report``: one self-contained page on a run."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from events.blobs import Blobs
from events.errors import BlobMissingError
from events.pruned import KnownBlobs
from scripts.files import check_free, write
from scripts.reporting.history import Run, load
from scripts.reporting.page import MARK, render
from scripts.reporting.truth import Truth, truth
from scripts.runs import truth_of, without_traceback


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
    if args.out:
        check_free(out, MARK)
    run = load(args.run)
    write(out, render(run, Blobs(args.run), _truth(run, args.run)).encode())
    n_kernels = len(run.kernels)
    print(f"wrote {out}: {n_kernels} kernels, {len(run.records)} records, head {run.head[:12]}")
    return 0


def _truth(run: Run, folder: Path) -> Truth | None:
    """The truth, where the target knows it and the artifacts are still there."""
    known = truth_of(run.state.begun.campaign)
    if known is None:
        return None
    try:
        return truth(run, KnownBlobs.of(folder, run.records).get, known)
    except BlobMissingError as e:
        print(f"without the section on the truth: {e}", file=sys.stderr)
        return None
