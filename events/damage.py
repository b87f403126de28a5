"""Verify a whole run: the log, every record in it, and every blob that a record names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from events import codec
from events.blob_names import blobs_of
from events.blobs import Blobs
from events.cursor import Cursor
from events.errors import BlobCorruptError, BlobMissingError, LogCorruptError, LogSchemaError
from events.frames import Frame, Position
from events.pruned import Pruned
from events.reading import torn_tail
from events.sealing import Root
from events.segments import Seal, segment_name
from events.vocabulary import Record, Sha


@dataclass(frozen=True)
class Damage:
    """A place of a run that is not what was written."""

    file: Path
    """What is damaged: a segment, or a blob."""
    segment: str
    """Name of the segment that holds the damaged batch, or the one that names the blob."""
    offset: int
    """Byte of the segment at which that batch begins."""
    seq: int
    """First record that cannot be trusted, or the one that first names the blob."""
    reason: str

    def __str__(self) -> str:
        of = "" if self.file.name == self.segment else f" of {self.segment}"
        return f"{self.file}: record {self.seq} at byte {self.offset}{of}: {self.reason}"


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
    reader = _Reader(run, Pruned(blobs.get), head)
    found = reader.found
    try:
        reader.read()
    except (LogCorruptError, LogSchemaError) as e:
        found.damage.append(Damage(e.path, e.path.name, e.offset, e.seq, e.reason))
    else:
        found.torn_bytes = len(torn_tail(run, found.end))
    found.damage[:0] = list(_damaged_blobs(found, reader.named, blobs))
    found.orphans = sorted(p for p in blobs.files() if p.name not in reader.named)
    return found


class _Reader:
    """Goes through the log of a run and notes what a survey tells of it."""

    def __init__(self, run: Path, pruned: Pruned, head: str | None) -> None:
        self.named: dict[Sha, tuple[int, Position]] = {}
        self.found = Survey(_NOWHERE, pruned=pruned.by)
        self._run = run
        self._pruned = pruned
        self._head = bytes.fromhex(head or "")
        self._root = Root()

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
        for record in records:
            self._pruned.apply(record)
            for sha in blobs_of(record.event):
                self.named.setdefault(sha, (record.seq, frame.start))

    def _check(self, path: Path, seal: Seal) -> None:
        if self._root.contents(seal.contents.digest) != seal.contents:
            reason = "the seal is not that of the blobs that the records name"
            raise LogCorruptError(path, seal.start.offset, seal.start.seq, reason)
        self._root = Root()


_NOWHERE = Position(b"", 0, 0, 0, b"", 0)


def _damaged_blobs(
    found: Survey, named: dict[Sha, tuple[int, Position]], blobs: Blobs
) -> Iterator[Damage]:
    for sha, (seq, at) in named.items():
        place = (blobs.path(sha), segment_name(at.segment), at.offset, seq)
        try:
            blobs.get(sha)
        except BlobMissingError:
            if sha not in found.pruned:
                yield Damage(*place, "the blob that it names is missing")
        except BlobCorruptError as e:
            yield Damage(*place, f"the blob is damaged: {e.reason}")
        else:
            found.n_blobs += 1
            if sha in found.pruned:
                found.unpruned.append(sha)
