"""The file operations of the record: one seam, behind which tests put a faulty disk."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SPARE_STEP = 1 << 16
MAX_SPARE_BYTES = 1 << 22


def spare(n_bytes: int, least: int = 0) -> int:
    """How many zeros a writer puts behind a file of ``n_bytes`` when it has to grow it.

    An append into them changes no length, so that its sync spares the file system a transaction.
    A quarter of what there is, so that a short file stays short.
    """
    return min(max(n_bytes // 4, least), MAX_SPARE_BYTES) // SPARE_STEP * SPARE_STEP


def read_small(path: Path, max_bytes: int) -> bytes | None:
    """Return the bytes of a file that nothing depends on.

    Returns:
        None if it cannot be read, has more than ``max_bytes``, or is a pipe or the like, from
        which reading might never end.
    """
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= max_bytes:
            return path.read_bytes()
    return None


class Disk:
    """The file operations that can fail halfway; tests put a faulty disk in its place."""

    def write(self, fd: int, data: bytes, offset: int) -> int:
        """Write some of ``data`` at ``offset``; return how many bytes."""
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Make the data and the length of a file durable."""
        os.fdatasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file to ``size`` bytes."""
        os.ftruncate(fd, size)

    def write_all(self, fd: int, data: bytes, offset: int) -> None:
        """Write all of ``data`` at ``offset``, however many writes it takes."""
        done = 0
        while done < len(data):
            n = self.write(fd, data[done:], offset + done)
            if n <= 0:
                raise OSError(f"the disk took {done} of {len(data)} bytes")
            done += n

    def random(self, n_bytes: int) -> bytes:
        """Return random bytes for the id of a new file."""
        return os.urandom(n_bytes)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in ``folder`` durable."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)  # fdatasync may skip a folder whose size did not change
        finally:
            os.close(fd)

    def create(self, path: Path, data: bytes) -> None:
        """Put a new durable file of ``data`` at ``path``, whole or not at all.

        Its name is durable only after `sync_folder`.
        """
        with self._staged(path, data) as staged:
            if path.exists():  # a writer that has been replaced finds the work of the next one
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            staged.replace(path)

    def replace(self, path: Path, data: bytes) -> None:
        """As `create`, in the place of a file that may be there."""
        with self._staged(path, data) as staged:
            staged.replace(path)

    @contextmanager
    def _staged(self, path: Path, data: bytes) -> Iterator[Path]:
        staged = path.with_name(f"{path.name}.tmp")
        staged.unlink(missing_ok=True)  # whoever left it may be alive, and have it open
        try:
            self._fill(os.open(staged, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), data)
            yield staged
        except OSError:
            staged.unlink(missing_ok=True)
            raise

    def _fill(self, fd: int, data: bytes) -> None:
        try:
            self.write_all(fd, data, 0)
            self.sync(fd)
        finally:
            os.close(fd)


DISK = Disk()
