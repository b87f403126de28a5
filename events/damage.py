"""Verify a whole run: the log, every record in it, and every blob that a record names."""

from dataclasses import dataclass, field
from pathlib import Path

from events.blob_damage import survey_blobs
from events.blob_names import blobs_of
from events.blobs import Blobs
from events.errors import LogCorruptError, LogSchemaError
from events.frames import FILE_HEADER_BYTES, Position
from events.pruned import Pruned
from events.reading import batches, read_start, torn_tail
from events.vocabulary import Sha


@dataclass(frozen=True)
class Damage:
    """A place of a run that is not what was written."""

    file: Path
    offset: int
    """Byte of the file at which the damaged batch, blob or part of a pack begins."""
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
    """Those of them that a broken-off prune has left behind."""
    orphans: list[Sha] = field(default_factory=list)
    """Blobs that no record names; harmless."""
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
    named: dict[Sha, int] = {}
    pruned = Pruned(blobs.get)
    found = Survey(Position(b"", FILE_HEADER_BYTES, 0, b""), pruned=pruned.by)
    try:
        found.end = read_start(run)
        found.noted = 0 if found.head == head else None
        for frame, records in batches(run):
            for record in records:
                pruned.apply(record)
                for sha in blobs_of(record.event):
                    named.setdefault(sha, record.seq)
            found.end = frame.end
            found.noted = found.end.seq if found.head == head else found.noted
    except (LogCorruptError, LogSchemaError) as e:
        found.damage.append(Damage(e.path, e.offset, e.seq, e.reason))
    else:
        found.torn_bytes = len(torn_tail(run, found.end))
    its = survey_blobs(blobs, named, pruned.by)
    found.n_blobs, found.unpruned, found.orphans = its.n_intact, its.unpruned, its.orphans
    found.damage[:0] = [Damage(*bad) for bad in its.bad]
    return found
