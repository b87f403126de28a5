"""Rules of the blobs: stored once, durable, and never returned damaged."""

import errno
import hashlib
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.blobs import Blobs
from events.disk import Disk
from events.errors import BlobCorruptError, BlobMissingError, LogWriteError


class CountingDisk(Disk):
    """A disk that counts syncs and can be full."""

    def __init__(self) -> None:
        self.files = 0
        self.folders = 0
        self.full = False

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write, or fail as told."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Sync, or fail as told."""
        self.files += 1
        super().sync(fd)

    def sync_folder(self, folder: Path) -> None:
        """Sync and count."""
        self.folders += 1
        super().sync_folder(folder)


def stored(run: Path) -> list[Path]:
    return sorted(p for p in (run / "blobs").rglob("*") if p.is_file())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Blobs:
    return Blobs(tmp_path_factory.mktemp("run"))


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=5000))
def test_any_bytes_come_back(shared: Blobs, data: bytes) -> None:
    """Blobs hold binaries as well as text, empty ones too."""
    assert shared.get(shared.put(data)) == data


def test_a_blob_is_named_by_its_bytes_and_stored_once(tmp_path: Path) -> None:
    """Equal bytes from anyone are one file, compressed."""
    data = b"x" * 10_000
    shas = {Blobs(tmp_path).put(data), *Blobs(tmp_path).put_all([data, data])}

    assert shas == {hashlib.sha256(data).hexdigest()}
    (sha,) = shas
    assert stored(tmp_path) == [tmp_path / "blobs" / sha[:2] / sha]
    assert stored(tmp_path)[0].stat().st_size < 100


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """An audit works on a read-only copy."""
    with pytest.raises(BlobMissingError, match="0000"):
        Blobs(tmp_path).get("0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_text_never_fails_on_foreign_bytes(tmp_path: Path) -> None:
    """A compiler's output may contain anything."""
    blobs = Blobs(tmp_path)
    assert blobs.text(blobs.put("schön\n".encode() + b"\xff")) == "schön\n\ufffd"


def test_any_flipped_bit_is_found(tmp_path: Path) -> None:
    """A damaged blob must never be taken for evidence."""
    blobs = Blobs(tmp_path)
    data = bytes(range(40))
    sha = blobs.put(data)
    (path,) = stored(tmp_path)
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with suppress(BlobCorruptError):
            assert blobs.get(sha) == data  # some bits of the zlib header mean nothing


@pytest.mark.parametrize(
    "content",
    [b"", zlib.compress(b"forged"), zlib.compress(b"truth")[:-1], zlib.compress(b"truth") + b"x"],
    ids=["emptied", "exchanged", "cut", "extended"],
)
def test_a_tampered_blob_is_found_and_putting_it_again_heals_it(
    tmp_path: Path, content: bytes
) -> None:
    """Every read is checked; the right bytes are always welcome."""
    sha = Blobs(tmp_path).put(b"truth")
    stored(tmp_path)[0].write_bytes(content)

    with pytest.raises(BlobCorruptError, match="restore it"):
        Blobs(tmp_path).get(sha)
    assert Blobs(tmp_path).put(b"truth") == sha
    assert Blobs(tmp_path).get(sha) == b"truth"


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    """The error must say which one to restore."""
    sha = Blobs(tmp_path).put(b"data")
    stored(tmp_path)[0].unlink()

    with pytest.raises(BlobMissingError) as missing:
        Blobs(tmp_path).get(sha)
    assert missing.value.sha == sha


def test_many_blobs_cost_one_sync_each_and_one_per_folder(tmp_path: Path) -> None:
    """Syncs are what storing costs; known blobs cost none."""
    disk = CountingDisk()
    blobs = Blobs(tmp_path, disk)
    many = [str(n).encode() for n in range(20)]
    shas = blobs.put_all(many)
    n_folders = len({sha[:2] for sha in shas})
    counts = disk.files, disk.folders
    blobs.put_all(reversed(many))

    assert shas == tuple(hashlib.sha256(data).hexdigest() for data in many)
    assert counts == (20, n_folders + 2)
    assert (disk.files, disk.folders) == counts


def test_a_blob_found_on_the_disk_is_made_durable_before_it_counts(tmp_path: Path) -> None:
    """Whoever stored it may have died before the folder was synced."""
    Blobs(tmp_path).put(b"data")
    disk = CountingDisk()
    Blobs(tmp_path, disk).put(b"data")

    assert disk.folders >= 1


def test_a_full_disk_leaves_no_half_blob(tmp_path: Path) -> None:
    """The name of a blob must never stand for part of it."""
    disk = CountingDisk()
    disk.full = True
    blobs = Blobs(tmp_path, disk)
    with pytest.raises(LogWriteError, match="No space left"):
        blobs.put(b"data")

    assert stored(tmp_path) == []
    disk.full = False
    assert blobs.get(blobs.put(b"data")) == b"data"


def test_concurrent_puts_and_gets_agree(tmp_path: Path) -> None:
    """Equal blobs from many writers are one whole file at every moment."""
    many = [bytes([n]) * 2000 for n in range(8)]
    first = Blobs(tmp_path).put_all(many[:1])[0]

    def work(_: int) -> bool:
        blobs = Blobs(tmp_path)
        shas = blobs.put_all(many)
        return [blobs.get(sha) for sha in shas] == many and blobs.get(first) == many[0]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))
    assert len(stored(tmp_path)) == len(many)
