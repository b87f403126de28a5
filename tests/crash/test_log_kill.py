"""A killed writer loses nothing that it acknowledged."""

import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.child import Child
from tests.support.writing import acknowledged, check, small_files, write_on

KILLS_A_RUN = 20
MAX_LIFE_S = 0.06


@pytest.mark.timeout(3600)
def test_a_killed_writer_loses_nothing_acknowledged(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill -9 at any moment: while it opens, appends, seals, puts blobs, begins a pack, prunes."""
    small_files(monkeypatch)
    rng = np.random.default_rng(3)
    n_kills = n_acknowledged = 0
    # On a busy machine many a writer is killed before its first append: then go on.
    while n_kills < pytestconfig.getoption("--kills") or n_acknowledged <= n_kills:
        run, known = tmp_path / str(n_kills), dict[int, str]()
        for _ in range(KILLS_A_RUN):
            writer = Child(partial(write_on, run)).go()
            time.sleep(rng.uniform(0, MAX_LIFE_S))
            writer.send(signal.SIGKILL)
            known |= acknowledged(writer.end())
            check(run, known)
        n_kills, n_acknowledged = n_kills + KILLS_A_RUN, n_acknowledged + len(known)
