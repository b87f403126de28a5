"""Verify a whole run: the log, every record in it, and every blob that a record names."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from events.blob_names import blobs_of
from events.blobs import Blobs
from events.errors import BlobCorruptError, BlobMissingError, LogCorruptError, LogSchemaError
from events.frames import FILE_HEADER_BYTES, Position
from events.pruned import Pruned
from events.reading import batches, read_start, torn_tail
from events.vocabulary import Sha


@dataclass(frozen=True)
class Damage:
    """A place of a run that is not what was written."""

    file: Path
    offset: int
    """Byte of ``events.log`` at which the damaged batch, or the one that names the blob, begins."""
    seq: int
    """First record that cannot be trusted, or the one that first names the blob."""
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: record {self.seq} at byte {self.offset}: {self.reason}"


@dataclass
class Survey:
    """What there is of a run and what is wrong with it."""

    end: Position
    """After the last whole record."""
    torn_bytes: int = 0
    """After that: cut off by a crash, or still being written."""
    noted: int | None = None
    """Number of records under the head that was asked about; None if no place has that head."""
    n_blobs: int = 0
    """Intact blobs that records name, equal ones counted once."""
    pruned: dict[Sha, int] = field(default_factory=dict)
    """Blobs given up on purpose, with the record that says so."""
    unpruned: list[Sha] = field(default_factory=list)
    """Those of them that a broken-off prune has left in the folder."""
    orphans: list[Path] = field(default_factory=list)
    """Files among the blobs that no record names; harmless."""
    damage: list[Damage] = field(default_factory=list)
    """In the order of the log; after damage to the log itself nothing can be said of it."""

    @property
    def head(self) -> str:
        """Chain hash over all whole records, hex."""
        return self.end.chain.hex()


def survey(run: Path, head: str | None = None) -> Survey:
    """Read everything of a run, which another process may be writing.

    Args:
        run: the run folder; nothing in it is changed.
        head: a chain hash that somebody noted, hex, to look for.

    Raises:
        LogMissingError: there is no log.
    """
    blobs = Blobs(run)
    named: dict[Sha, tuple[int, int]] = {}
    pruned = Pruned(blobs.get)
    found = Survey(Position(b"", FILE_HEADER_BYTES, 0, b""), pruned=pruned.by)
    try:
        found.end = read_start(run)
        found.noted = 0 if found.head == head else None
        for frame, records in batches(run):
            for record in records:
                pruned.apply(record)
                for sha in blobs_of(record.event):
                    named.setdefault(sha, (record.seq, frame.start.offset))
            found.end = frame.end
            found.noted = found.end.seq if found.head == head else found.noted
    except (LogCorruptError, LogSchemaError) as e:
        found.damage.append(Damage(e.path, e.offset, e.seq, e.reason))
    else:
        found.torn_bytes = len(torn_tail(run, found.end))
    found.damage[:0] = list(_damaged_blobs(found, named, blobs))
    found.orphans = sorted(p for p in blobs.files() if p.name not in named)
    return found


def _damaged_blobs(
    found: Survey, named: dict[Sha, tuple[int, int]], blobs: Blobs
) -> Iterator[Damage]:
    for sha, (seq, offset) in named.items():
        try:
            blobs.get(sha)
        except BlobMissingError:
            if sha not in found.pruned:
                yield Damage(blobs.path(sha), offset, seq, "the blob that it names is missing")
        except BlobCorruptError as e:
            yield Damage(blobs.path(sha), offset, seq, f"the blob is damaged: {e.reason}")
        else:
            found.n_blobs += 1
            if sha in found.pruned:
                found.unpruned.append(sha)
