"""Rules of the blobs: stored once, durable, and never returned damaged."""

import errno
import hashlib
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import blobs as blobs_module
from events import pack_writer, packs
from events.blobs import Blobs
from events.disk import Disk
from events.errors import BlobCorruptError, BlobMissingError, LogWriteError
from tests.support.pack_files import flip, spoil


class CountingDisk(Disk):
    """A disk that counts writes and syncs, and can be full or failing.

    Attributes:
        room: bytes that it still takes; None if it is not going to be full.
        fails: whether syncs of files fail.
    """

    def __init__(self) -> None:
        self.writes = 0
        self.files = 0
        self.folders = 0
        self.room: int | None = None
        self.fails = False

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write what there is room for."""
        self.writes += 1
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n = super().write(fd, data[: self.room], offset)
        self.room = None if self.room is None else self.room - n
        return n

    def sync(self, fd: int) -> None:
        """Sync, or fail as told."""
        self.files += 1
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)

    def sync_folder(self, folder: Path) -> None:
        """Sync and count."""
        self.folders += 1
        super().sync_folder(folder)


def pack(run: Path, number: int = 0) -> Path:
    return run / "blobs" / f"{number:04d}.pack"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Blobs:
    return Blobs(tmp_path_factory.mktemp("run"))


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=5000))
def test_any_bytes_come_back(shared: Blobs, data: bytes) -> None:
    """Blobs hold binaries as well as text, empty ones too."""
    assert shared.get(shared.put(data)) == data


def test_a_blob_is_named_by_its_bytes_and_stored_once(tmp_path: Path) -> None:
    """Equal bytes are one blob, whenever they are put, compressed."""
    data = b"x" * 10_000
    first = Blobs(tmp_path).put(data)
    size = pack(tmp_path).stat().st_size
    again = {*Blobs(tmp_path).put_all([data, data]), Blobs(tmp_path).put(data)}

    assert {first} == again == {hashlib.sha256(data).hexdigest()} == set(Blobs(tmp_path).names())
    assert pack(tmp_path).stat().st_size == size < 200
    assert Blobs(tmp_path).stored_bytes(first) == size - 32


def test_what_cannot_be_compressed_is_stored_as_it_is(tmp_path: Path) -> None:
    """So that no blob takes more than its bytes and a header."""
    blobs, data = Blobs(tmp_path), os.urandom(5000)
    assert blobs.stored_bytes(blobs.put(data)) == 5000 + 49


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """An audit works on a read-only copy."""
    blobs = Blobs(tmp_path)
    for look in (blobs.get, blobs.place, blobs.stored_bytes):
        with pytest.raises(BlobMissingError, match="0000"):
            look("0" * 64)
    blobs.remove_all(["0" * 64])
    assert [*blobs.names(), *blobs.flaws(), *tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["", "0", "zz" * 32, "../../etc/passwd"])
def test_what_is_no_name_names_no_blob(tmp_path: Path, name: str) -> None:
    """A record may come from anywhere."""
    blobs = Blobs(tmp_path)
    blobs.put(b"data")
    with pytest.raises(BlobMissingError):
        blobs.get(name)


def test_text_never_fails_on_foreign_bytes(tmp_path: Path) -> None:
    """A compiler's output may contain anything."""
    blobs = Blobs(tmp_path)
    assert blobs.text(blobs.put("schön\n".encode() + b"\xff")) == "schön\n\ufffd"


@pytest.mark.parametrize("data", [bytes(range(40)), b"compressed " * 40], ids=["plain", "packed"])
def test_any_flipped_bit_is_found(tmp_path: Path, data: bytes) -> None:
    """A damaged blob must never be taken for evidence, and it hides no other."""
    before, sha, after = Blobs(tmp_path).put_all([b"before", data, b"after"])
    begin = Blobs(tmp_path).place(sha).offset
    for bit in range(8 * Blobs(tmp_path).stored_bytes(sha)):
        flip(pack(tmp_path), begin + bit // 8, bit % 8)
        blobs = Blobs(tmp_path)
        with suppress(BlobCorruptError, BlobMissingError):
            assert blobs.get(sha) == data  # some bits of compressed bytes mean nothing
        assert (blobs.get(before), blobs.get(after)) == (b"before", b"after")
        flip(pack(tmp_path), begin + bit // 8, bit % 8)
    assert Blobs(tmp_path).get(sha) == data


def test_a_flipped_bit_in_the_header_of_a_pack_hides_no_blob(tmp_path: Path) -> None:
    """The damage is named, and a writer leaves such a pack alone."""
    sha = Blobs(tmp_path).put(b"data")
    for bit in range(8 * 32):
        flip(pack(tmp_path), bit // 8, bit % 8)
        assert Blobs(tmp_path).get(sha) == b"data"
        assert [flaw.place for flaw in Blobs(tmp_path).flaws()] == [(pack(tmp_path), 0)]
        flip(pack(tmp_path), bit // 8, bit % 8)

    flip(pack(tmp_path), 20)
    damaged = pack(tmp_path).read_bytes()
    blobs = Blobs(tmp_path)
    assert blobs.place(blobs.put(b"more")).path == pack(tmp_path, 1)
    assert pack(tmp_path).read_bytes() == damaged


def test_a_damaged_blob_is_healed_by_putting_it_again(tmp_path: Path) -> None:
    """The right bytes are always welcome, and readers that know the old ones find them."""
    sha = Blobs(tmp_path).put(b"truth")
    spoil(tmp_path, sha)
    reader = Blobs(tmp_path)
    with pytest.raises(BlobCorruptError, match="restore it"):
        reader.get(sha)

    assert Blobs(tmp_path).put(b"truth") == sha
    assert reader.get(sha) == Blobs(tmp_path).get(sha) == b"truth"


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    """The error must say which one to restore, whoever gets it."""
    sha = Blobs(tmp_path).put(b"data")
    pack(tmp_path).unlink()

    with pytest.raises(BlobMissingError) as missing:
        Blobs(tmp_path).get(sha)
    assert pickle.loads(pickle.dumps(missing.value)).sha == sha


# ---- what storing costs, and when it fails ---------------------------------------------------


def test_a_group_costs_one_write_and_one_sync(tmp_path: Path) -> None:
    """Syncs are what storing costs; known blobs cost none."""
    disk = CountingDisk()
    blobs = Blobs(tmp_path, disk)
    blobs.put(b"first")
    before = disk.writes, disk.files, disk.folders
    many = [str(n).encode() for n in range(20)]
    shas = blobs.put_all(many)
    after = disk.writes, disk.files, disk.folders
    blobs.put_all(reversed(many))

    assert shas == tuple(hashlib.sha256(data).hexdigest() for data in many)
    assert after == (before[0] + 1, before[1] + 1, before[2])
    assert (disk.writes, disk.files, disk.folders) == after


def test_most_groups_leave_the_length_of_a_long_pack_alone(tmp_path: Path) -> None:
    """A new length is what makes a sync slow."""
    blobs, sizes = Blobs(tmp_path), []
    for _ in range(60):
        blobs.put(os.urandom(10_000))
        sizes.append(pack(tmp_path).stat().st_size)

    assert len(set(sizes[30:])) <= 6


def test_a_writer_knows_where_its_blobs_are_without_a_look_at_the_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows the last blob is spare, and grows: who walks it pays more for every put."""
    blobs = Blobs(tmp_path)
    blobs.put(b"the first starts the pack")
    with monkeypatch.context() as patch:
        patch.setattr(packs, "walk", _never)
        names = blobs.put_all((b"one", b"another")) + blobs.put_all((b"one more",))
        assert [blobs.get(name) for name in names] == [b"one", b"another", b"one more"]
    reader = Blobs(tmp_path)
    assert [blobs.place(name) for name in names] == [reader.place(name) for name in names]


def _never(*args: object) -> None:
    raise AssertionError("the pack was walked")


def test_a_full_pack_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prune writes whole packs anew, so they stay small; a full one has no zeros behind it."""
    monkeypatch.setattr(pack_writer, "MAX_PACK_BYTES", 300_000)
    blobs, many = Blobs(tmp_path), [os.urandom(20_000) for _ in range(40)]
    shas = [blobs.put(data) for data in many]

    assert [blobs.place(sha).path for sha in shas[::15]] == [pack(tmp_path, n) for n in range(3)]
    assert pack(tmp_path).stat().st_size == 32 + 15 * 20_049
    assert [Blobs(tmp_path).get(sha) for sha in shas] == many


def test_a_large_group_is_made_durable_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So much is written again by the next writer, which cannot know what was synced."""
    monkeypatch.setattr(pack_writer, "MAX_UNSYNCED_BYTES", 1000)
    disk, data = CountingDisk(), os.urandom(10_000)
    blobs = Blobs(tmp_path, disk)
    blobs.put(b"first")
    before = disk.files
    assert blobs.get(blobs.put(data)) == data
    assert disk.files - before == 11


def test_a_blob_found_on_the_disk_is_written_again_before_it_counts(tmp_path: Path) -> None:
    """Whoever stored it may have died before the sync, or at it."""
    Blobs(tmp_path).put(b"data")
    disk = CountingDisk()
    Blobs(tmp_path, disk).put(b"data")

    assert (disk.writes, disk.files, disk.folders) == (1, 1, 2)


def test_after_a_failed_sync_nothing_more_is_put(tmp_path: Path) -> None:
    """To ask again may succeed and mean nothing; a new process writes it again."""
    disk = CountingDisk()
    blobs = Blobs(tmp_path, disk)
    safe = blobs.put(b"safe")
    disk.fails = True
    with pytest.raises(LogWriteError, match="Input/output error"):
        blobs.put(b"lost?")
    disk.fails = False
    for data in (b"lost?", b"other"):
        with pytest.raises(LogWriteError, match="did not confirm"):
            blobs.put(data)
    assert blobs.put(b"safe") == safe

    again = CountingDisk()
    other = Blobs(tmp_path, again)
    assert other.get(other.put(b"lost?")) == b"lost?"
    assert (again.writes, again.files) == (1, 1)


@pytest.mark.parametrize("room", [0, 60, 130, 4000])
def test_a_full_disk_leaves_no_half_blob(tmp_path: Path, room: int) -> None:
    """Nothing is stored of a group that has no room, and later ones go on in its place."""
    disk = CountingDisk()
    blobs, reader = Blobs(tmp_path, disk), Blobs(tmp_path)
    safe = blobs.put(b"safe")
    before = pack(tmp_path).read_bytes()
    disk.room = room
    group = [b"small", os.urandom(3000), os.urandom(3000)]
    with pytest.raises(LogWriteError, match="No space left"):
        blobs.put_all(group)

    assert pack(tmp_path).read_bytes() == before
    assert list(reader.names()) == [safe]
    disk.room = None
    shas = blobs.put_all([b"other", *group])
    assert [reader.get(sha) for sha in (safe, *shas)] == [b"safe", b"other", *group]
    assert list(blobs.flaws()) == []


def test_a_full_disk_removes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """A pack is written anew beside the old one, which takes its place when it is whole."""
    disk = CountingDisk()
    blobs = Blobs(tmp_path, disk)
    shas = blobs.put_all([b"stays", b"goes"])
    disk.room = 50
    with pytest.raises(LogWriteError, match="could not be changed"):
        blobs.remove_all(shas[1:])

    assert [blobs.get(sha) for sha in shas] == [b"stays", b"goes"]
    assert list((tmp_path / "blobs").iterdir()) == [pack(tmp_path)]


def test_a_reader_that_saw_a_group_that_was_taken_back_finds_the_next(tmp_path: Path) -> None:
    """Another group lies in the same place."""
    blobs, reader = Blobs(tmp_path), Blobs(tmp_path)
    blobs.put(b"safe")
    size = pack(tmp_path).stat().st_size
    gone = Blobs(tmp_path).put_all([b"taken", b"back"])
    assert [reader.get(sha) for sha in gone] == [b"taken", b"back"]
    os.truncate(pack(tmp_path), size)

    shas = Blobs(tmp_path).put_all([b"a longer one, and", b"others"])
    assert [reader.get(sha) for sha in shas] == [b"a longer one, and", b"others"]
    with pytest.raises(BlobMissingError):
        reader.get(gone[0])


def test_a_torn_tail_is_cut_by_the_next_writer(tmp_path: Path) -> None:
    """It was never named, and behind it nothing would be found by its place."""
    sha = Blobs(tmp_path).put(b"data")
    whole = pack(tmp_path).read_bytes()
    Blobs(tmp_path).put(os.urandom(3000))
    os.truncate(pack(tmp_path), len(whole) + 2000)
    assert [flaw.place.offset for flaw in Blobs(tmp_path).flaws()] == [len(whole)]

    assert Blobs(tmp_path).put(b"data") == sha
    assert pack(tmp_path).read_bytes() == whole


def test_a_blob_that_no_reader_would_accept_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader makes room for no more, whatever a pack claims."""
    monkeypatch.setattr(blobs_module, "MAX_RAW_BYTES", 1000)
    with pytest.raises(LogWriteError, match="1,001 bytes"):
        Blobs(tmp_path).put(bytes(1001))
    assert Blobs(tmp_path).put(bytes(1000))


# ---- side by side ----------------------------------------------------------------------------


def test_the_objects_of_one_writer_take_turns(tmp_path: Path) -> None:
    """A process has several; none writes over what another has put."""
    one, two = Blobs(tmp_path), Blobs(tmp_path)
    many = [f"{n} ".encode() * 30 for n in range(20)]
    shas = [(one, two)[n % 2].put(data) for n, data in enumerate(many)]
    for blobs in (one, two, Blobs(tmp_path)):
        assert [blobs.get(sha) for sha in shas] == many
    assert list(one.flaws()) == []


def test_many_threads_may_put(tmp_path: Path) -> None:
    """Those that append to one log at a time store their blobs first."""
    blobs = Blobs(tmp_path)

    def work(k: int) -> bool:
        many = [b"shared", *(f"{k} {n}".encode() for n in range(20))]
        shas = [blobs.put(data) for data in many]
        return [blobs.get(sha) for sha in shas] == many

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    assert len(list(Blobs(tmp_path).names())) == 161


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs of 64 KB, so that there are many."""
    monkeypatch.setattr(pack_writer, "MAX_PACK_BYTES", 1 << 16)


@pytest.mark.usefixtures("small_packs")
def test_readers_find_what_was_put_beside_a_writer_and_a_prune(tmp_path: Path) -> None:
    """A report of a live run, or an audit while blobs are removed, is not misled."""
    writer = Blobs(tmp_path)
    kept = {writer.put(os.urandom(3000)) for _ in range(40)}
    going = [writer.put(os.urandom(3000)) for _ in range(40)]
    done: list[bool] = []

    def look(_: int) -> int:
        reader, n = Blobs(tmp_path), 0
        while not done or n < 2:
            for sha in sorted(kept):
                assert hashlib.sha256(reader.get(sha)).hexdigest() == sha
            for sha in going:
                with suppress(BlobMissingError):
                    reader.get(sha)
            n += 1
        return n

    with ThreadPoolExecutor(3) as pool:
        looks = [pool.submit(look, k) for k in range(2)]
        try:
            for k in range(0, 40, 4):
                writer.remove_all(going[k : k + 4])
                kept = kept | {writer.put(os.urandom(3000))}
        finally:
            done.append(True)
        assert all(look.result() for look in looks)
    assert set(Blobs(tmp_path).names()) == kept
