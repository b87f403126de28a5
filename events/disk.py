"""The file operations of the record: one seam, behind which tests put a faulty disk."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

MAX_STAGED = 64
"""Files open at a time."""


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

    def sync_folder(self, folder: Path) -> None:
        """Make the names in ``folder`` durable."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)  # fdatasync may skip a folder whose size did not change
        finally:
            os.close(fd)

    def create(self, path: Path, data: bytes) -> None:
        """Put a durable file of ``data`` at ``path``, whole or not at all.

        Its name is durable only after `sync_folder`. A file that was there is replaced.
        """
        self.create_all({path: data})

    def create_all(self, files: Mapping[Path, bytes]) -> None:
        """As `create`, for many files; if it fails, any of them may be there, each one whole."""
        paths = list(files)
        for k in range(0, len(paths), MAX_STAGED):
            self._create_some({path: files[path] for path in paths[k : k + MAX_STAGED]})

    def _create_some(self, files: Mapping[Path, bytes]) -> None:
        staged: dict[str, Path] = {}
        try:
            with ExitStack() as opened:
                fds = [self._stage(path, files[path], staged, opened) for path in files]
                for fd in fds:  # all are written by now, so that few transactions hold them
                    self.sync(fd)
            for name, path in staged.items():
                Path(name).replace(path)
        except OSError:
            for name in staged:
                Path(name).unlink(missing_ok=True)
            raise

    def _stage(self, path: Path, data: bytes, staged: dict[str, Path], opened: ExitStack) -> int:
        """Write a file of another name beside ``path``; return its handle, open until the end."""
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
        staged[name] = path
        opened.callback(os.close, fd)
        self.write_all(fd, data, 0)
        return fd


DISK = Disk()
