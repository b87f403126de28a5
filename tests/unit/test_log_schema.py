"""Rules of what is undamaged and yet not understood: it is named, never skipped."""

import struct
import zlib
from pathlib import Path

import msgpack
import pytest

from events import frames
from events.errors import LogCorruptError, LogError, LogSchemaError
from events.log import read, read_start
from events.segments import FILE_MAGIC, FORMAT, segment_path
from tests.support.logs import write


def forge(run: Path, body: bytes) -> None:
    """Put a log of one faultless frame with any body into the run folder."""
    write(run)
    path = segment_path(run, 0)
    data, _ = frames.pack(read_start(run), body, 1, 1)
    path.write_bytes(path.read_bytes() + data)


def packed(seq: int, **event: str) -> bytes:
    """A body of one record with any event."""
    return bytes(msgpack.packb([(seq, 0, "a", event, ())]))


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    """A log from a newer version is not damaged, and the error must not say so."""
    forge(tmp_path, packed(0, kind="comet_seen"))

    with pytest.raises(LogSchemaError, match=r"'comet_seen'.*newer version"):
        list(read(tmp_path))


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    """Leaving it out would change what happened."""
    forge(tmp_path, packed(0, kind="run_interrupted", reason="x", mood="bad"))

    with pytest.raises(LogSchemaError, match="mood"):
        list(read(tmp_path))


def test_records_are_numbered_as_their_frame_says(tmp_path: Path) -> None:
    """Others refer to a record by its number."""
    forge(tmp_path, packed(1, kind="run_interrupted", reason="x"))

    with pytest.raises(LogCorruptError, match="own numbers"):
        list(read(tmp_path))


def test_a_body_in_another_encoding_is_not_called_damaged(tmp_path: Path) -> None:
    """Its checksum says that it is what was written."""
    forge(tmp_path, b"\xc1")

    with pytest.raises(LogSchemaError, match="not msgpack"):
        list(read(tmp_path))


@pytest.mark.parametrize(
    ("magic", "version", "error", "match"),
    [
        (b"PNG", FORMAT, LogCorruptError, "not a segment of a log"),
        (FILE_MAGIC, FORMAT + 1, LogSchemaError, "unknown log format 3"),
    ],
)
def test_a_foreign_file_is_told_from_a_newer_log(
    tmp_path: Path, magic: bytes, version: int, error: type[LogError], match: str
) -> None:
    """One is to be restored, the other to be read with another version."""
    header = struct.pack("<8sI16s", magic, version, bytes(16))
    segment_path(tmp_path, 0).parent.mkdir()
    segment_path(tmp_path, 0).write_bytes(header + struct.pack("<I", zlib.crc32(header)))

    with pytest.raises(error, match=match):
        list(read(tmp_path))
