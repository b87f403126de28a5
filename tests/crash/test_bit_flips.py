"""Twenty thousand flipped bits of one log, each found; and those of the zeros behind it."""

import os
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from events import reading
from events.errors import LogError
from events.log import Entry, EventLog, read
from events.reading import read_end, torn_tail
from events.segments import segment_path
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


def flip(fd: int, bit: int) -> None:
    """Flip one bit in place; a second flip undoes it."""
    (byte,) = os.pread(fd, 1, bit // 8)
    os.pwrite(fd, bytes([byte ^ 1 << bit % 8]), bit // 8)


def is_refused(run: Path) -> bool:
    try:
        deque(read(run), maxlen=0)
    except LogError:
        return True
    return False


def test_twenty_thousand_flipped_bits_are_all_refused(tmp_path: Path) -> None:
    """Wherever the bit is: in the headers, in the chain, in the records."""
    write(tmp_path, 24).close()
    fd = os.open(segment_path(tmp_path, 0), os.O_RDWR)
    bits = np.random.default_rng(8).permutation(8 * os.fstat(fd).st_size)[:N_FLIPS]
    assert len(bits) == N_FLIPS
    try:
        for bit in bits.tolist():
            flip(fd, bit)
            assert is_refused(tmp_path), bit
            flip(fd, bit)
    finally:
        os.close(fd)
    assert len(list(read(tmp_path))) == 24


def test_a_flipped_bit_of_the_spare_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost with it; but what is there was not written by the log."""
    monkeypatch.setattr(reading, "SPARE_STEP", 512)
    with write(tmp_path, 24):
        end, size = read_end(tmp_path)[0].at, segment_path(tmp_path, 0).stat().st_size
        assert torn_tail(tmp_path, end) == b""
        fd = os.open(segment_path(tmp_path, 0), os.O_RDWR)
        rng = np.random.default_rng(9)
        for bit in rng.integers(8 * end.offset, 8 * size, N_SPARE_FLIPS).tolist():
            flip(fd, bit)
            assert torn_tail(tmp_path, end)
            assert len(list(read(tmp_path))) == 24
            flip(fd, bit)
        os.close(fd)
