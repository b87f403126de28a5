"""Rules of pack files: whatever is in one, a reader neither fails, hangs nor takes in too much."""

import hashlib
import os
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from events import packs
from events.blobs import Blobs
from events.compression import PLAIN, ZSTD, Compression
from events.errors import BlobCorruptError, BlobMissingError, LogWriteError
from events.packs import MAX_RAW_BYTES, Packed

MARK = b"mark"
HEAD = packs.header(MARK, bytes(12))
MB = 1 << 20


def laid(run: Path, *parts: bytes) -> Blobs:
    """The blobs of a run with one pack of these parts."""
    (run / "blobs").mkdir(exist_ok=True)
    (run / "blobs" / "0000.pack").write_bytes(b"".join(parts))
    return Blobs(run)


def claimed(data: bytes, n_raw: int, kind: int, stored: bytes) -> tuple[str, bytes]:
    """The name of ``data``, and a blob that claims to be it."""
    name = hashlib.sha256(data).digest()
    return name.hex(), packs.blob(MARK, Packed(name, n_raw, kind, stored))


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail if much more than 4 MB is asked for in between."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 6 * MB
    finally:
        tracemalloc.stop()


BOMB = zstandard.ZstdCompressor().compress(bytes(1 << 28))
"""Says within how large it is."""
SILENT_BOMB = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 28))
WIDE = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)


def wide() -> bytes:
    """Something short that asks for a window of 128 MB."""
    frame = zstandard.ZstdCompressor(compression_params=WIDE).compressobj()
    return frame.compress(b"truth") + frame.flush()


@pytest.mark.parametrize(
    ("n_raw", "kind", "stored"),
    [
        (5, PLAIN, b"forge"),
        (5, PLAIN, b"trut"),
        (6, PLAIN, b"truth"),
        (5, ZSTD, b"truth"),
        (5, ZSTD, b""),
        (5, ZSTD, Compression().pack(b"truth" * 9)[1]),
        (4, ZSTD, zstandard.compress(b"truth")),
        (5, ZSTD, zstandard.compress(b"truth") + b"x"),
        (5, ZSTD, zstandard.compress(b"truth")[:-1]),
        (5, ZSTD, BOMB),
        (5, ZSTD, SILENT_BOMB),
        (1000, ZSTD, BOMB),
        (5, ZSTD, wide()),
        (MAX_RAW_BYTES + 1, ZSTD, SILENT_BOMB),
        (0xFFFFFFFF, ZSTD, zstandard.compress(b"truth")),
        (5, 7, b"truth"),
    ],
)
def test_a_blob_that_is_not_what_it_claims_is_refused_in_little_memory(
    tmp_path: Path, n_raw: int, kind: int, stored: bytes
) -> None:
    """The run folder of somebody else is read as well."""
    sha, blob = claimed(b"truth", n_raw, kind, stored)
    blobs = laid(tmp_path, HEAD, blob)
    with little_memory(), pytest.raises(BlobCorruptError, match="restore it"):
        blobs.get(sha)


def test_a_blob_that_claims_more_than_the_file_has_is_none(tmp_path: Path) -> None:
    """It looks like one that is still being written; what follows its header is still found."""
    sha, long = claimed(b"truth", 5, PLAIN, b"truth" * 50)
    other, blob = claimed(b"other", 5, PLAIN, b"other")
    blobs = laid(tmp_path, HEAD, long[:49], blob)
    with pytest.raises(BlobMissingError):
        blobs.get(sha)
    assert blobs.get(other) == b"other"


def test_a_pack_of_an_unknown_version_is_named_and_left_alone(tmp_path: Path) -> None:
    """A newer version of the program may have written it."""
    fields = struct.pack("<8sI4s12s", packs.MAGIC, 2, MARK, bytes(12))
    sha, blob = claimed(b"truth", 5, PLAIN, b"truth")
    data = fields + struct.pack("<I", zlib.crc32(fields)) + blob
    blobs = laid(tmp_path, data)
    with pytest.raises(BlobMissingError):
        blobs.get(sha)
    assert ["unknown version 2" in flaw.reason for flaw in blobs.flaws()] == [True]

    blobs.put(b"more")
    blobs.remove_all([sha])
    assert (tmp_path / "blobs" / "0000.pack").read_bytes() == data


def test_a_pack_inside_a_blob_is_not_taken_for_blobs_around_it(tmp_path: Path) -> None:
    """Even when damage makes a reader search for the next blob."""
    inner = Blobs(tmp_path / "inner")
    names = inner.put_all([os.urandom(100) for _ in range(9)])
    content = (tmp_path / "inner" / "blobs" / "0000.pack").read_bytes()
    outer, blob = claimed(content, len(content), PLAIN, content)
    last, after = claimed(b"after", 5, PLAIN, b"after")
    blobs = laid(tmp_path, HEAD, b"damage", blob[10:], after)

    assert list(blobs.names()) == [last]
    assert not {outer, *names} & set(blobs.names())


def test_what_is_no_pack_is_passed_over(tmp_path: Path) -> None:
    """Nobody waits for a pipe, and what was left half-written is no blob."""
    root = tmp_path / "blobs"
    root.mkdir()
    os.mkfifo(root / "0000.pack")
    (root / "0001.pack").mkdir()
    (root / "0002.pack.tmp").write_bytes(HEAD)
    (root / "0003.pack").write_bytes(b"")
    for name in ("x.pack", "00005.pack", "9.pack", "9999999999.pack"):
        (root / name).write_bytes(HEAD)
    blobs = Blobs(tmp_path)
    assert list(blobs.names()) == []
    assert blobs.get(blobs.put(b"data")) == b"data"
    assert blobs.place(next(blobs.names())).path == root / "0004.pack"


PART = st.one_of(
    st.binary(max_size=60),
    st.just(HEAD),
    st.just(MARK * 30),
    st.builds(
        lambda data, n_raw, kind, cut: claimed(data, n_raw, kind, data)[1][: 49 + cut],
        st.binary(max_size=40),
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 255),
        st.integers(0, 60),
    ),
    st.integers(0, 70_000).map(bytes),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(PART, max_size=8), begin=st.sampled_from([HEAD, b""]))
def test_no_pack_makes_a_reader_or_a_writer_fail(
    folder: Path, parts: list[bytes], begin: bytes
) -> None:
    """Whatever is found is right, and what is put is found."""
    for path in (folder / "blobs").glob("*"):
        path.unlink()
    blobs = laid(folder, begin, *parts)
    list(blobs.flaws())
    for name in blobs.names():
        assert blobs.stored_bytes(name)
        with suppress(BlobCorruptError):
            assert hashlib.sha256(blobs.get(name)).hexdigest() == name
    names = blobs.put_all([b"one", b"two"])
    blobs.remove_all(names[:1])
    assert Blobs(folder).get(names[1]) == b"two"
    with pytest.raises(BlobMissingError):
        blobs.get(names[0])


def test_a_pack_full_of_false_marks_is_read_in_time(tmp_path: Path) -> None:
    """The search goes through each byte once."""
    sha, blob = claimed(b"truth", 5, PLAIN, b"truth")
    blobs = laid(tmp_path, HEAD, MARK * MB, blob)
    assert blobs.get(sha) == b"truth"


def test_errors_of_a_folder_that_cannot_be_written_name_it(tmp_path: Path) -> None:
    """As those of the log do."""
    (tmp_path / "blobs").write_bytes(b"")
    with pytest.raises(LogWriteError, match="blobs"):
        Blobs(tmp_path).put(b"data")
