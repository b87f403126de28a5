"""Large values of a run, stored once each under the SHA-256 of their bytes."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from events.disk import DISK, Disk
from events.errors import BlobCorruptError, BlobMissingError, LogWriteError
from events.vocabulary import Sha


class Blobs:
    """The blobs of one run, in ``run/blobs/ab/abcd...``, zlib-compressed.

    Any number of readers and writers may work side by side: a blob appears whole or not at all,
    and two writers of equal bytes write equal files.
    """

    def __init__(self, run: Path, disk: Disk = DISK) -> None:
        self._root = run / "blobs"
        self._disk = disk
        self._durable: set[Sha] = set()
        self._folders: set[Path] = set()

    def put(self, data: bytes) -> Sha:
        """Store ``data``; it is durable on return.

        Raises:
            LogWriteError: the disk is full or failing.
        """
        return self.put_all((data,))[0]

    def put_all(self, many: Iterable[bytes]) -> tuple[Sha, ...]:
        """Store many blobs, all durable on return, and sync each folder once.

        Returns:
            Their names, in the order given.

        Raises:
            LogWriteError: the disk is full or failing; some may have been stored.
        """
        pairs = [(hashlib.sha256(data).hexdigest(), data) for data in many]
        fresh = {sha: data for sha, data in pairs if sha not in self._durable}
        try:
            self._make_folders({self.path(sha).parent for sha in fresh})
            self._disk.create_all(
                {self.path(sha): zlib.compress(fresh[sha]) for sha in fresh if self._lacks(sha)}
            )
            for folder in {self.path(sha).parent for sha in fresh}:
                self._disk.sync_folder(folder)
        except OSError as e:
            raise LogWriteError(self._root, f"a blob could not be stored ({e})") from e
        self._durable.update(fresh)
        return tuple(sha for sha, _ in pairs)

    def get(self, sha: Sha) -> bytes:
        """Return the bytes of a blob, hashed again on every read.

        Raises:
            BlobMissingError: there is no such blob.
            BlobCorruptError: the stored bytes are not those that were put.
        """
        try:
            packed = self.path(sha).read_bytes()
        except FileNotFoundError:
            raise BlobMissingError(sha) from None
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(packed)
        except zlib.error as e:
            raise BlobCorruptError(sha, str(e)) from e
        if not unpacker.eof or unpacker.unused_data:
            raise BlobCorruptError(sha, "it is longer or shorter than what was stored")
        found = hashlib.sha256(data).hexdigest()
        if found != sha:
            raise BlobCorruptError(sha, f"its bytes hash to {found}")
        return data

    def text(self, sha: Sha) -> str:
        """Return a blob as text; bytes that are not UTF-8 become U+FFFD.

        Raises:
            BlobMissingError: there is no such blob.
            BlobCorruptError: the stored bytes are not those that were put.
        """
        return self.get(sha).decode("utf-8", errors="replace")

    def path(self, sha: Sha) -> Path:
        """Where a blob is stored, or would be."""
        return self._root / sha[:2] / sha

    def files(self) -> Iterator[Path]:
        """Every file among the blobs, in no order; what a crash left half-written as well."""
        return (path for path in self._root.glob("*/*") if path.is_file())

    def remove_all(self, shas: Iterable[Sha]) -> None:
        """Remove blobs for good, durably; one that is not there is no error.

        Raises:
            LogWriteError: the disk is failing; some may have been removed.
        """
        paths = [self.path(sha) for sha in shas]
        try:
            for path in paths:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in paths if path.parent.is_dir()}:
                self._disk.sync_folder(folder)
        except OSError as e:
            raise LogWriteError(self._root, f"a blob could not be removed ({e})") from e

    def _lacks(self, sha: Sha) -> bool:
        """Whether there is no intact blob of this name."""
        try:
            self.get(sha)
        except (BlobMissingError, BlobCorruptError):
            return True
        return False

    def _make_folders(self, folders: set[Path]) -> None:
        """Create folders that this object has not yet seen, with durable names."""
        new = folders - self._folders
        if not new:
            return
        for folder in new:
            folder.mkdir(parents=True, exist_ok=True)
        self._disk.sync_folder(self._root)
        self._disk.sync_folder(self._root.parent)
        self._folders |= new
