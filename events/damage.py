"""Verify a whole run: the log, every record in it, and every blob that a record names."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from events import codec, index
from events.blob_damage import survey_blobs
from events.blob_names import blobs_of
from events.blobs import Blobs
from events.cursor import Cursor
from events.errors import LogCorruptError, LogSchemaError
from events.frames import Frame, Position
from events.index import Indexer, index_path
from events.pruned import Pruned
from events.reading import torn_tail
from events.sealing import Root
from events.segments import Seal
from events.vocabulary import Record, Sha


@dataclass(frozen=True)
class Damage:
    """A place of a run that is not what was written."""

    file: Path
    """A segment, or a pack of blobs; the folder of the blobs for one that is in no pack."""
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
    odd_indexes: list[Path] = field(default_factory=list)
    """Indexes that count and are wrong; harmless, since they may be deleted."""
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
    pruned = Pruned(blobs.get)
    reader = _Reader(run, pruned, head)
    found = reader.found
    try:
        reader.read()
    except (LogCorruptError, LogSchemaError) as e:
        found.damage.append(Damage(e.path, e.offset, e.seq, e.reason))
    else:
        found.torn_bytes = len(torn_tail(run, found.end))
    its = survey_blobs(blobs, reader.named, pruned.by)
    found.n_blobs, found.unpruned, found.orphans = its.n_intact, its.unpruned, its.orphans
    found.damage[:0] = [Damage(*bad) for bad in its.bad]
    return found


class _Reader:
    """Goes through the log of a run and notes what a survey tells of it."""

    def __init__(self, run: Path, pruned: Pruned, head: str | None) -> None:
        self.named: dict[Sha, int] = {}
        self.found = Survey(_NOWHERE, pruned=pruned.by)
        self._run = run
        self._pruned = pruned
        self._head = bytes.fromhex(head or "")
        self._root, self._indexer = Root(), Indexer(0)

    def read(self) -> None:
        cursor = Cursor(self._run)
        self._reach(cursor.at)
        for step in cursor.steps():
            self._reach(step.start)
            if isinstance(step, Frame):
                self._take_in(step, codec.decode(cursor.path, step))
            else:
                self._check(cursor.path, step)
            self._reach(step.end)
        self._reach(cursor.at)

    def _reach(self, at: Position) -> None:
        self.found.end = at
        if at.chain == self._head:
            self.found.noted = at.seq

    def _take_in(self, frame: Frame, records: Sequence[Record]) -> None:
        self._root.add(records)
        self._indexer.add(frame.start.offset, map(codec.outline, records))
        for record in records:
            self._pruned.apply(record)
            for sha in blobs_of(record.event):
                self.named.setdefault(sha, record.seq)

    def _check(self, path: Path, seal: Seal) -> None:
        if self._root.contents(seal.contents.digest) != seal.contents:
            reason = "the seal is not that of the blobs that the records name"
            raise LogCorruptError(path, seal.start.offset, seal.start.seq, reason)
        if index.misleads(path, self._indexer.index(), seal.contents.digest):
            self.found.odd_indexes.append(index_path(path))
        self._root, self._indexer = Root(), Indexer(seal.end.seq)


_NOWHERE = Position(b"", 0, 0, 0, b"", 0)
