"""Record a run that later versions must still read: `python -m tests.support.record_run FOLDER`."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from events.codec import SCHEMA
from events.log import read_all
from events.projections.state import replay
from tests.support.runs import begin, campaign

EXPECTED = "expected.json"
RUN = "run"
OF_ITS_WRITER = ("LOCK", "lease")
"""Files that say on which machine the run was recorded."""


def record(folder: Path) -> None:
    """Put a short campaign of the fake target into an empty folder, and beside it what it says."""
    run = folder / RUN
    begin(run, campaign(max_candidates=8))
    for name in OF_ITS_WRITER:
        (run / name).unlink()
    expected = {**told(run), "schema": SCHEMA.hex()}
    (folder / EXPECTED).write_text(json.dumps(expected, indent=2) + "\n")


def told(run: Path) -> dict[str, Any]:
    """What every version must read from a run."""
    records, head = read_all(run)
    return {"records": len(records), "head": head, "digest": replay(records).digest()}


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    record(target)
