"""Find the records about one candidate in a long log without reading all of it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from events import codec, frames, index
from events.codec import Outline
from events.cursor import Cursor
from events.errors import LogCorruptError, LogError
from events.frames import Frame, Position
from events.index import Index, Indexer, link
from events.segments import SEAL_BYTES, Seal
from events.vocabulary import CandidateId, CandidateProposed, Record, Reply

IN_MEMORY = 2
"""Sealed segments that are kept until the next one is read."""


def records_about(run: Path, candidate: CandidateId) -> list[Record]:
    """Return the records about a candidate, in order.

    These are the events that name it in their field ``candidate``, the replies to the requests
    among them, and the replies that its proposal follows from. Header and seal of every segment
    are checked, the hash of each one that holds some of these records, and every batch of the open
    one. An index that is not there or does not count is made, and stored if that can be done.

    Raises:
        LogMissingError: there is no log.
        LogCorruptError: damage in what was checked.
        LogSchemaError: an event kind or a format that is not known here.
    """
    try:
        return _found(run, candidate, _known_index)
    except _MisledError:
        return _found(run, candidate, _new_index)


_Data: TypeAlias = Callable[[], bytes]
_IndexOf: TypeAlias = Callable[["_Segment", _Data, bytes], Index]
"""Gives the index of a sealed segment, its bytes, and the digest in its seal."""


class _MisledError(LogCorruptError):
    """There is no such record as there should be: its index is wrong, or if that is new, itself."""


class _Segment(NamedTuple):
    """A segment, or as much as there is of the open one."""

    path: Path
    start: Position
    """Of its first frame."""
    is_ours: bool
    """Written in the vocabulary here."""
    frame_at: Callable[[Position], Frame | None]
    """The frame at a place of its verified bytes, as far as one can be there."""

    @classmethod
    def under(cls, cursor: Cursor, frame_at: Callable[[Position], Frame | None]) -> "_Segment":
        """The segment that a cursor has just entered."""
        return cls(cursor.path, cursor.at, cursor.header.schema == codec.SCHEMA, frame_at)

    def indexed(self, found: Iterable[Frame]) -> Index:
        """Make the index of these frames, which are all of its."""
        indexer = Indexer(self.start.segment)
        for frame in found:
            at = frame.start
            try:
                indexer.add(at.offset, self._outlines(frame))
            except ValueError as e:
                raise _MisledError(self.path, at.offset, at.seq, str(e)) from e
        return indexer.index()

    def records(self, its: Index, seqs: Iterable[int]) -> Iterator[Record]:
        """Read the records of these numbers, which are in order, where its index has them."""
        for (offset, first), wanted in groupby(seqs, its.frame):
            at = self.start._replace(offset=offset, seq=first)
            records = self._records(self.frame_at(at), at)
            for seq in wanted:
                record = records.get(seq)
                if record is None or link(codec.outline(record)) != its.link(seq):
                    raise _MisledError(self.path, offset, seq, "it is not here")
                yield record

    def _outlines(self, frame: Frame) -> Iterable[Outline]:
        if self.is_ours:
            return codec.outlines(frame.body)
        return map(codec.outline, codec.decode(self.path, frame))

    def _records(self, frame: Frame | None, at: Position) -> dict[int, Record]:
        if frame is None:
            return {}
        try:
            found = codec.trusted(frame.body) if self.is_ours else codec.decode(self.path, frame)
        except (ValueError, LogError) as e:
            raise _MisledError(self.path, at.offset, at.seq, str(e)) from e
        return {record.seq: record for record in found}


def _found(run: Path, candidate: CandidateId, index_of: _IndexOf) -> list[Record]:
    parts, own, found = list(_parts(run, index_of)), dict[int, Record](), dict[int, Record]()
    for segment, its in parts:  # in order, because a request comes before its reply
        for record in segment.records(its, its.about(candidate)):
            if codec.outline(record).candidate == candidate:
                own[record.seq] = record
        for record in segment.records(its, its.answers(own)):
            if record.because[0] in own:
                found[record.seq] = record
    proposals = [r for r in own.values() if isinstance(r.event, CandidateProposed)]
    causes = {seq for proposal in proposals for seq in proposal.because}
    for segment, its in parts:
        for record in segment.records(its, its.within(causes)):
            if isinstance(record.event, Reply):
                found[record.seq] = record
    found |= own
    return [found[seq] for seq in sorted(found)]


def _parts(run: Path, index_of: _IndexOf) -> Iterator[tuple[_Segment, Index]]:
    """All segments with their indexes; no more than a few of them are in memory."""
    cursor, read = Cursor(run), lru_cache(IN_MEMORY)(_verified)
    for seal in cursor.seals():
        data = partial(read, cursor.path, cursor.at.segment, seal.contents.digest)
        segment = _Segment.under(cursor, partial(_skimmed, data))
        yield segment, index_of(segment, data, seal.contents.digest)
    frames_of: dict[int, Frame] = {}
    segment = _Segment.under(cursor, lambda at: frames_of.get(at.offset))
    for step in cursor.steps():
        if isinstance(step, Seal):
            break  # what follows was appended while we were reading
        frames_of[step.start.offset] = step
    yield segment, segment.indexed(frames_of.values())


def _verified(path: Path, first: int, digest: bytes) -> bytes:
    """The bytes of a sealed segment, of which those before the seal have this digest."""
    data = path.read_bytes()
    if hashlib.sha256(memoryview(data)[:-SEAL_BYTES]).digest() != digest:
        raise LogCorruptError(path, 0, first, "the segment is not what its seal says")
    return data


def _skimmed(data: _Data, at: Position) -> Frame | None:
    return next(frames.skim(data(), at), None)


def _known_index(segment: _Segment, data: _Data, digest: bytes) -> Index:
    known = index.load(segment.path, segment.start.segment, digest)
    return known or _new_index(segment, data, digest)


def _new_index(segment: _Segment, data: _Data, digest: bytes) -> Index:
    made = segment.indexed(frames.skim(data(), segment.start))
    index.store(segment.path, made, digest)
    return made
