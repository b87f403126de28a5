"""Damage to the packs of a run, for tests."""

from pathlib import Path

from events.blobs import Blobs


def spoil(run: Path, sha: str) -> None:
    """Flip a bit of the last byte of a blob."""
    blobs = Blobs(run)
    path, offset = blobs.place(sha)
    flip(path, offset + blobs.stored_bytes(sha) - 1)


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Flip a bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        (old,) = file.read(1)
        file.seek(offset)
        file.write(bytes([old ^ 1 << bit]))
