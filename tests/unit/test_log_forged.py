"""Rules of bytes whose checksums fit, though no writer put them there: refused by name."""

import os
import struct
from pathlib import Path

import pytest

from events.errors import LogCorruptError
from events.log import EventLog, batches, read
from events.segments import HEADER_BYTES, MAX_FILE_BYTES, segment_path
from events.watermark import MARK_NAME
from tests.support.logs import clock, last_segment, texts, write
from tests.support.mutations import mended

EPOCH, COUNT = HEADER_BYTES + 16, HEADER_BYTES + 20


def forge(path: Path, offset: int, data: bytes) -> None:
    """Put other bytes into a segment, with checksums and hashes that fit."""
    old = path.read_bytes()
    path.write_bytes(mended(path.name, old[:offset] + data + old[offset + len(data) :]))


def test_a_sealed_segment_of_no_records_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its seal proves that it is as it was sealed, not that a writer of ours did so."""
    monkeypatch.setattr("events.segments.MAX_RECORDS", 1)
    write(tmp_path, "a", "b")
    path = segment_path(tmp_path, 0)
    forge(path, path.read_bytes().index(b"kind"), b"mind")
    with pytest.raises(LogCorruptError, match="not the records"):
        list(read(tmp_path))


def test_a_frame_of_more_records_than_it_has_is_refused(tmp_path: Path) -> None:
    """Nobody makes room for four billion numbers to find out."""
    write(tmp_path, "a")
    forge(last_segment(tmp_path), COUNT, struct.pack("<I", (1 << 32) - 1))
    with pytest.raises(LogCorruptError, match="own numbers"):
        list(batches(tmp_path))


def test_no_writer_follows_on_the_last_number(tmp_path: Path) -> None:
    """The next writer's number has no form in a batch, so it must not begin."""
    write(tmp_path, "a")
    forge(last_segment(tmp_path), EPOCH, struct.pack("<I", (1 << 32) - 1))
    with pytest.raises(LogCorruptError, match="no number is left"):
        EventLog.open(tmp_path, clock)
    assert texts(tmp_path) == ["a"]


def test_a_segment_longer_than_any_is_refused_unread(tmp_path: Path) -> None:
    """A file may claim to be longer than all memory."""
    write(tmp_path, "a")
    os.truncate(last_segment(tmp_path), MAX_FILE_BYTES + 1)
    with pytest.raises(LogCorruptError, match="longer than any segment"):
        texts(tmp_path)


def test_a_mark_of_any_length_is_read_no_further_than_a_mark_goes(tmp_path: Path) -> None:
    """It is advisory, and must not stop a run."""
    write(tmp_path, "a")
    os.truncate(tmp_path / MARK_NAME, 1 << 40)
    write(tmp_path, "b")
    assert texts(tmp_path) == ["a", "b"]
