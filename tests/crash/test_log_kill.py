"""A killed writer loses nothing that it acknowledged, and a reader beside it sees only wholes."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from events.blobs import Blobs
from events.log import Entry, EventLog, read
from events.vocabulary import RunInterrupted

WRITER = textwrap.dedent(
    """
    import os
    import sys
    from pathlib import Path
    from events import segments
    from events.blobs import Blobs
    from events.log import Entry, EventLog
    from events.vocabulary import RunInterrupted

    segments.MAX_RECORDS = 9
    run = Path(sys.argv[1])
    blobs = Blobs(run)
    with EventLog.open(run, lambda: 0) as log:
        if log.repaired:
            log.append([Entry(log.repaired, "director")])
        n = 0
        while True:
            sha = blobs.put(f"{os.getpid()} {n}".encode())
            events = [RunInterrupted(reason=sha), RunInterrupted(reason="x" * (n % 7 * 3000))]
            records = log.append([Entry(event, "director") for event in events])
            os.write(1, b"%d %s\\n" % (records[0].seq, sha.encode()))
            n += 1
    """
)


def start_writer(run: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(run)], stdout=subprocess.PIPE)


def acknowledged(output: bytes) -> dict[int, str]:
    """Number and blob of every batch whose append returned."""
    lines = output.decode().split("\n")[:-1]
    return {int(seq): sha for seq, sha in (line.split() for line in lines)}


@pytest.mark.timeout(3600)
def test_a_killed_writer_loses_nothing_acknowledged(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Kill -9 at a random moment, again and again on the same run."""
    rng = np.random.default_rng(3)
    known: dict[int, str] = {}
    for _ in range(pytestconfig.getoption("--kills")):
        with start_writer(tmp_path) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(rng.uniform(0, 0.03))
            writer.kill()
            known |= acknowledged(first + writer.stdout.read())

        events = [record.event for record in read(tmp_path)]
        assert all(events[seq] == RunInterrupted(reason=sha) for seq, sha in known.items())

    blobs = Blobs(tmp_path)
    assert all(blobs.get(sha) for sha in known.values())
    with EventLog.open(tmp_path, lambda: 0) as log:
        log.append([Entry(RunInterrupted(reason="end"), "director")])
    assert len(list(read(tmp_path))) > max(known)


def test_a_reader_beside_a_busy_writer_sees_only_whole_batches(tmp_path: Path) -> None:
    """Reports and replays of a live run must not disturb it nor be misled."""
    lengths = []
    with start_writer(tmp_path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            records = list(read(tmp_path))
            assert len(records) % 2 == 0
            lengths.append(len(records))
        writer.kill()
        writer.stdout.read()

    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3
