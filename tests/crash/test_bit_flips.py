"""Twenty thousand flipped bits of four segments, each found; and those of the zeros behind."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from events import segments
from events.errors import LogError
from events.log import Entry, EventLog, batches, read
from events.reading import read_end, torn_tail
from events.segments import HEADER_BYTES, SEAL_BYTES, segment_path, segments_of
from events.vocabulary import RunInterrupted
from tests.support.crash_disk import QUICK

N_FLIPS = 20_000
N_SPARE_FLIPS = 500


def write(run: Path, n: int) -> EventLog:
    """A log of ``n`` batches, still open: it has its spare."""
    log = EventLog.open(run, lambda: 0, QUICK)
    for k in range(n):
        log.append([Entry(RunInterrupted(reason=f"{k}." * (k % 9)), "director")])
    return log


@contextmanager
def flipped(path: Path, bit: int) -> Iterator[None]:
    """A bit of a file is flipped in place meanwhile."""
    with path.open("r+b", buffering=0) as file:
        (byte,) = os.pread(file.fileno(), 1, bit // 8)
        os.pwrite(file.fileno(), bytes([byte ^ 1 << bit % 8]), bit // 8)
        yield
        os.pwrite(file.fileno(), bytes([byte]), bit // 8)


def read_through(run: Path) -> None:
    deque(read(run), maxlen=0)


def check_through(run: Path) -> None:
    deque(batches(run), maxlen=0)


def open_to_write(run: Path) -> None:
    EventLog.open(run, lambda: 0, QUICK).close()


def is_refused(run: Path, look: Callable[[Path], None]) -> bool:
    try:
        look(run)
    except LogError:
        return True
    return False


def test_twenty_thousand_flipped_bits_are_all_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the bit is; only a writer is silent, and only of what is between header and seal."""
    monkeypatch.setattr(segments, "MAX_RECORDS", 7)
    write(tmp_path, 24).close()
    paths = [segment_path(tmp_path, first) for first in segments_of(tmp_path)]
    sizes = {path: path.stat().st_size for path in paths}
    places = [(path, bit) for path in paths for bit in range(8 * sizes[path])]
    chosen = np.random.default_rng(8).permutation(len(places))[:N_FLIPS].tolist()
    assert (len(paths), len(chosen)) == (4, N_FLIPS)
    for n, (path, bit) in enumerate(places[k] for k in chosen):
        with flipped(path, bit):
            assert is_refused(tmp_path, read_through), (path, bit)
            if n % 8 == 0:
                inside = HEADER_BYTES <= bit // 8 < sizes[path] - SEAL_BYTES and path != paths[-1]
                assert is_refused(tmp_path, check_through), (path, bit)
                assert is_refused(tmp_path, open_to_write) != inside, (path, bit)
    assert len(list(read(tmp_path))) == 24


def test_a_flipped_bit_of_the_spare_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost with it; but what is there was not written by the log."""
    monkeypatch.setattr("events.disk.SPARE_STEP", 512)
    with write(tmp_path, 24):
        end, size = read_end(tmp_path)[0].at, segment_path(tmp_path, 0).stat().st_size
        assert torn_tail(tmp_path, end) == b""
        path = segment_path(tmp_path, 0)
        rng = np.random.default_rng(9)
        for bit in rng.integers(8 * end.offset, 8 * size, N_SPARE_FLIPS).tolist():
            with flipped(path, bit):
                assert torn_tail(tmp_path, end)
                assert len(list(read(tmp_path))) == 24
