"""Large values of a run, stored once each under the SHA-256 of their bytes."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from events import packs
from events.compression import Compression
from events.disk import DISK, Disk
from events.errors import BlobCorruptError, BlobMissingError, LogWriteError
from events.pack_index import PackIndex, Place
from events.pack_writer import PackWriter
from events.packs import MAX_RAW_BYTES, Entry, Packed
from events.vocabulary import Sha

FOLDER_NAME = "blobs"

T = TypeVar("T")


class Flaw(NamedTuple):
    """A part of a pack that is no blob."""

    place: Place
    reason: str


class Blobs:
    """The blobs of one run, compressed, in the packs ``run/blobs/0000.pack`` and so on.

    Any number of readers may work beside the one writer, and beside a prune.

    Attributes:
        root: the folder of the packs.
    """

    def __init__(self, run: Path, disk: Disk = DISK) -> None:
        self.root = run / FOLDER_NAME
        self._index = PackIndex(self.root)
        self._writer = PackWriter(self.root, self._index, disk)
        self._compression = Compression()
        self._durable: set[bytes] = set()
        self._lock = RLock()

    def put(self, data: bytes) -> Sha:
        """Store ``data``; it is durable on return.

        Raises:
            LogWriteError: as `put_all`.
        """
        return self.put_all((data,))[0]

    def put_all(self, many: Iterable[bytes]) -> tuple[Sha, ...]:
        """Store many blobs with one write and one sync, all durable on return.

        Only the writer of the run may do so, or whoever has its lock.

        Returns:
            Their names, in the order given.

        Raises:
            LogWriteError: one is too large, or the disk is full (later ones may succeed) or
                failing (this object stores no more).
        """
        pairs = [(hashlib.sha256(data).digest(), self._checked(data)) for data in many]
        with self._lock:
            fresh = {name: data for name, data in pairs if name not in self._durable}
            if fresh:
                self._writer.settle()
                new = [self._packed(*pair) for pair in fresh.items() if self._lacks(pair[0])]
                if new:
                    self._writer.append(new)
                self._durable.update(fresh)
        return tuple(name.hex() for name, _ in pairs)

    def fence(self, check: Callable[[], None]) -> None:
        """Let ``check`` raise a `LogWriteError` before each change, see `EventLog.check`."""
        self._writer.fence(check)

    def begin_pack(self) -> None:
        """Put no more blobs into the packs that there are.

        Raises:
            LogWriteError: the disk is full or failing.
        """
        with self._lock:
            self._writer.begin()

    def get(self, sha: Sha) -> bytes:
        """Return the bytes of a blob, hashed again on every read.

        Raises:
            BlobMissingError: there is no such blob.
            BlobCorruptError: the stored bytes are not those that were put.
        """
        with self._lock:
            try:
                return self._use(sha, self._unpacked)
            except ValueError as e:
                if self._index.has_moved(_name(sha)):  # it was put again
                    return self.get(sha)
                raise BlobCorruptError(sha, str(e)) from e

    def text(self, sha: Sha) -> str:
        """Return a blob as text; bytes that are not UTF-8 become U+FFFD.

        Raises:
            BlobMissingError: there is no such blob.
            BlobCorruptError: the stored bytes are not those that were put.
        """
        return self.get(sha).decode("utf-8", errors="replace")

    def names(self) -> Iterator[Sha]:
        """Every blob that there is, in no order; what is damaged shows when it is read."""
        with self._lock:
            self._index.refresh()
            return iter([name.hex() for name in self._index])

    def stored_bytes(self, sha: Sha) -> int:
        """Bytes that a blob takes in its pack.

        Raises:
            BlobMissingError: there is no such blob.
        """
        with self._lock:
            return self._use(sha, lambda _, entry: entry.end - entry.begin)

    def place(self, sha: Sha) -> Place:
        """Where a blob is.

        Raises:
            BlobMissingError: there is no such blob.
        """
        try:
            with self._lock:
                return self._index.place(_name(sha))
        except KeyError:
            raise BlobMissingError(sha) from None

    def flaws(self) -> Iterator[Flaw]:
        """Iterate over the parts of the packs that are no blobs."""
        for path in self._index.paths():
            with FileIO(path) as file:
                for offset, reason in packs.flaws(file):
                    yield Flaw(Place(path, offset), reason)

    def remove_all(self, shas: Iterable[Sha]) -> None:
        """Remove blobs for good, durably; one that is not there is no error.

        The packs that hold them are written anew, which takes the space of one at a time.

        Raises:
            LogWriteError: the disk is full or failing; some may have been removed.
        """
        names = {_name(sha) for sha in shas}
        with self._lock:
            self._durable -= names
            self._writer.remove(names)

    def _packed(self, name: bytes, data: bytes) -> Packed:
        compression, stored = self._compression.pack(data)
        return Packed(name, len(data), compression, stored)

    def _unpacked(self, file: FileIO, entry: Entry) -> bytes:
        """The raw bytes of a blob; a `ValueError` says why they cannot be had."""
        stored = packs.stored_bytes(file, entry)
        data = self._compression.unpack(entry.compression, stored, entry.n_raw)
        found = hashlib.sha256(data)
        if found.digest() != entry.name:
            raise ValueError(f"its bytes hash to {found.hexdigest()}")
        return data

    def _lacks(self, name: bytes) -> bool:
        """Whether there was no intact blob of this name at the last look."""
        if self._index.find(name) is None:
            return True
        try:
            self.get(name.hex())
        except (BlobMissingError, BlobCorruptError):
            return True
        return False

    def _checked(self, data: bytes) -> bytes:
        if len(data) > MAX_RAW_BYTES:
            reason = f"a blob of {len(data):,} bytes has more than {MAX_RAW_BYTES:,}"
            raise LogWriteError(self.root, reason)
        return data

    def _use(self, sha: Sha, do: Callable[[FileIO, Entry], T]) -> T:
        try:
            return self._index.use(_name(sha), do)
        except KeyError:
            raise BlobMissingError(sha) from None


def _name(sha: Sha) -> bytes:
    try:
        return bytes.fromhex(sha)
    except ValueError:
        raise BlobMissingError(sha) from None
