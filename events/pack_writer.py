"""Append blobs to the last pack of a run, and remove blobs from all packs, durably."""

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from events import packs
from events.disk import Disk, spare
from events.errors import LogWriteError
from events.pack_index import Last, PackIndex

MAX_PACK_BYTES = 1 << 26
"""A pack that has as many takes no more blobs."""
MAX_UNSYNCED_BYTES = 1 << 22
"""Written between two syncs, so that only so much of the last pack can be in doubt."""


class PackWriter:
    """Changes packs; nobody else does meanwhile, since it takes the writer of the log."""

    def __init__(self, root: Path, index: PackIndex, disk: Disk) -> None:
        self._root = root
        self._index = index
        self._disk = disk
        self._settled: tuple[int, int] | None = None  # the durable end: number of a pack, offset
        self._failure: str | None = None
        self._check: Callable[[], None] = lambda: None

    def fence(self, check: Callable[[], None]) -> None:
        """Let ``check`` raise before each change if another writer has taken over."""
        self._check = check

    def settle(self) -> None:
        """Make durable what is there, whoever has put it, and cut off what a crash has left.

        Raises:
            LogWriteError: the disk is full or failing.
        """
        with self._checked():
            self._settle()

    def begin(self) -> None:
        """Start the next pack, if there are any; nothing more is put into those before.

        Raises:
            LogWriteError: the disk is full or failing.
        """
        with self._checked():
            self._index.refresh()
            if self._index.last:
                self._begin()

    def append(self, blobs: Sequence[packs.Packed]) -> None:
        """Append blobs, all durable on return.

        Raises:
            LogWriteError: the disk is full (nothing was appended, and later appends may succeed),
                or failing (all later ones are refused).
        """
        with self._checked():
            at = self._settle() or self._begin()
            parts = [packs.blob(at.head.mark, blob) for blob in blobs]
            data = b"".join(parts)
            with FileIO(self._index.path(at.number), "r+") as file:
                self._settled = None
                self._write(file.fileno(), at.end, data)
            self._settled = at.number, at.end + len(data)
            self._index.add((blob.name, len(part)) for blob, part in zip(blobs, parts, strict=True))

    def remove(self, names: Container[bytes]) -> None:
        """Write the packs that hold any of these blobs anew, one at a time, without them.

        Raises:
            LogWriteError: the disk is full or failing; some may have been removed.
        """
        with self._checked():
            self._index.forget()
            for path in self._index.paths():
                with FileIO(path) as file:
                    left = packs.without(file, names, self._disk.random(packs.ID_BYTES))
                if left is not None:
                    self._disk.replace(path, left)
            if self._root.exists():
                with self._confirming():
                    self._disk.sync_folder(self._root)

    @contextmanager
    def _checked(self) -> Iterator[None]:
        if self._failure:
            raise LogWriteError(self._root, self._failure)
        self._check()
        try:
            yield
        except OSError as e:
            raise LogWriteError(self._root, f"the blobs could not be changed ({e})") from e

    def _settle(self) -> Last | None:
        """Return the pack to append to, all of it durable; None if a new one is due."""
        self._index.refresh()
        last = self._index.last
        if last is None or last.head.flaw:
            return None
        is_full = last.end >= MAX_PACK_BYTES
        if is_full or self._settled != (last.number, last.end):
            self._rewrite_end(last)
        self._settled = last.number, last.end
        return None if is_full else last

    def _rewrite_end(self, last: Last) -> None:
        """Cut off what follows the last blob, and write again what may be in memory only.

        After a failed sync the kernel takes for written what is not.
        """
        begin = max(0, last.end - MAX_UNSYNCED_BYTES)
        with FileIO(self._index.path(last.number), "r+") as file:
            fd = file.fileno()
            self._disk.truncate(fd, last.end)
            self._disk.write_all(fd, packs.read(file, last.end - begin, begin), begin)
            with self._confirming():
                self._disk.sync(fd)
        with self._confirming():
            self._disk.sync_folder(self._root)
            self._disk.sync_folder(self._root.parent)

    def _begin(self) -> Last:
        """Start the next pack."""
        number = self._index.last.number + 1 if self._index.last else 0
        self._root.mkdir(parents=True, exist_ok=True)
        head = packs.header(self._disk.random(packs.MARK_BYTES), self._disk.random(packs.ID_BYTES))
        self._disk.create(self._index.path(number), head)
        last = self._settle()
        if last is None:
            raise OSError("a new pack is not there")
        return last

    def _write(self, fd: int, at: int, data: bytes) -> None:
        """Write into the spare, or with a new spare behind."""
        if at + len(data) > os.fstat(fd).st_size:
            data += bytes(spare(at + len(data)))
        for k in range(0, len(data), MAX_UNSYNCED_BYTES):
            try:
                self._disk.write_all(fd, data[k : k + MAX_UNSYNCED_BYTES], at + k)
            except OSError:
                with suppress(OSError):
                    self._disk.truncate(fd, at)
                raise
            with self._confirming():
                self._disk.sync(fd)

    @contextmanager
    def _confirming(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            # To ask again could succeed and mean nothing.
            self._failure = f"the disk did not confirm an earlier blob ({e})"
            raise
