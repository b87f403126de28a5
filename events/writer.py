"""The end of a log that is being written: durable bytes go there, in segment after segment."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NoReturn

from events import codec, index, segments
from events.blobs import Blobs
from events.cursor import Cursor
from events.disk import Disk
from events.errors import LogCorruptError, LogWriteError
from events.frames import MAX_EPOCH, MAX_SEQ, Frame, Position
from events.lock import Lock
from events.reading import read_end, spare_bytes, torn_tail
from events.sealing import read_back
from events.segments import Header, Seal, holds_log, segment_path
from events.vocabulary import LogRepaired
from events.watermark import MARK_BYTES, MARK_NAME, mark_bytes, read_mark

LOCK_NAME = "LOCK"

_INTERRUPTED = "an earlier append was interrupted"
_REPLACED = "another writer has taken over"


class Writer:
    """The one writer of a run, from the moment it has the lock; used by one thread at a time.

    Attributes:
        at: the end of what is durable.
        path: the segment there.
        lock: the lock that it holds.
        failure: why nothing more can be written; None as long as it can.
        repaired: as in `events.log.EventLog`.
    """

    def __init__(self, run: Path, disk: Disk) -> None:
        self.failure: str | None = None
        self._run = run
        self._disk = disk
        with ExitStack() as resources:
            self.lock = resources.enter_context(Lock(run / LOCK_NAME))
            _create_files(run, disk)
            cursor, last = read_end(run)
            _refuse_last_numbers(cursor)
            if self.lock.exceed(cursor.at.epoch):
                _renew(run, cursor.path, disk)
                cursor, last = read_end(run)
            self.path, self._header, self.at = cursor.path, cursor.header, cursor.at
            self._mark_fd = os.open(run / MARK_NAME, os.O_RDWR | os.O_NOFOLLOW)
            resources.callback(os.close, self._mark_fd)
            self._fd = os.open(self.path, os.O_RDWR)
            resources.callback(lambda: os.close(self._fd))
            self._size = os.fstat(self._fd).st_size
            self._is_sealed = isinstance(last, Seal)
            if last and (self._is_sealed or not _is_acknowledged(run, last.end)):
                self._settle(last)
            self.repaired = self._torn_tail()
            self._torn = self.repaired is not None
            self._resources = resources.pop_all()

    def make_ready(self) -> None:
        """Check that this is still the writer, and leave a segment that takes no more.

        Raises:
            LogWriteError: it is not, or an earlier write failed, or this one does.
            LogCorruptError: the segment cannot be read back.
        """
        self.check()
        if self._is_sealed or self._header.schema != codec.SCHEMA or segments.is_full(self.at):
            self._turn_over()

    def check(self) -> None:
        """Check that this is still the writer, and can write.

        Raises:
            LogWriteError: another one has taken over, or an earlier write failed.
        """
        if self.failure is None and not self.lock.is_ours():
            self.failure = _REPLACED
        if self.failure:
            raise LogWriteError(self.path, self.failure)

    def write(self, data: bytes, end: Position, *, seals: bool = False) -> None:
        """Put a frame or seal in the place of whatever follows the last one, and make it durable.

        Raises:
            LogWriteError: the disk is full or failing; nothing more can be written.
        """
        self.failure = _INTERRUPTED  # until this one is through
        try:
            self._put(data, end, is_last=seals or self._torn)
        except OSError as e:
            self._take_back()
            self._fail("the write failed", e)
        try:
            self._disk.sync(self._fd)
        except OSError as e:
            # The kernel may have dropped the pages: asking again could succeed and mean nothing.
            self._fail("the disk did not confirm the write", e)
        if not self.lock.is_ours():  # this may be in a file that the next writer has left
            self.failure = _REPLACED
            raise LogWriteError(self.path, self.failure)
        self.at, self._is_sealed, self._torn, self.failure = end, seals, False, None
        self._acknowledge()

    def close(self) -> None:
        """Cut off the spare and let go of the lock."""
        with self._resources:  # whatever happens meanwhile
            if self.failure is None and self.lock.is_ours():
                self._take_back()
            self.failure = self.failure or "the log is closed"

    def _put(self, data: bytes, end: Position, *, is_last: bool) -> None:
        """Write into the spare, or with a new spare, or as the last bytes of the file."""
        if end.offset > self._size and not is_last:
            data += bytes(spare_bytes(end))
        self._disk.write_all(self._fd, data, self.at.offset)
        self._size = max(self._size, self.at.offset + len(data))
        if is_last and self._size > end.offset:
            self._disk.truncate(self._fd, end.offset)
            self._size = end.offset

    def _take_back(self) -> None:
        """Cut off what follows the last frame, as well as the disk allows.

        That is the spare, or half a frame. If half a frame stays behind, it is a torn tail, which
        the next open reports; so a torn tail that is not reported yet is left there.
        """
        if not self._torn:
            with suppress(OSError):
                self._disk.truncate(self._fd, self.at.offset)

    def _fail(self, reason: str, cause: OSError) -> NoReturn:
        self.failure = f"an earlier append failed: {reason} ({cause})"
        raise LogWriteError(self.path, f"{reason} ({cause})") from cause

    def _acknowledge(self) -> None:
        """Note how far the log is durable; advisory, so a failure to write it is none."""
        with suppress(OSError):
            self._disk.write(self._mark_fd, mark_bytes(self.at), 0)

    def _turn_over(self) -> None:
        """Seal the segment, if that is not done, and begin the next one."""
        epoch = self.lock.epoch
        if self.at.seq == self.at.segment and not self._is_sealed:
            self._begin(self._header._replace(epoch=epoch, schema=codec.SCHEMA))  # it was empty
            return
        if not self._is_sealed:
            contents, its = read_back(self._run, self.at)
            self.write(*segments.pack_seal(self.at, contents, epoch), seals=True)
            index.store(self.path, its, contents.digest)
        log_id, at = self._header.log_id, self.at
        self._begin(Header(log_id, at.seq, epoch, codec.SCHEMA, at.chain))

    def _begin(self, header: Header) -> None:
        """Create a segment, whole and durable, and go on there."""
        data, at = segments.pack_header(header)
        path = segment_path(self._run, header.first)
        self.failure = _INTERRUPTED
        try:
            if self._size > self.at.offset:
                self._disk.truncate(self._fd, self.at.offset)
                self._disk.sync(self._fd)
            put = self._disk.replace if path == self.path else self._disk.create
            put(path, data)
            self._disk.sync_folder(path.parent)
            fd = os.open(path, os.O_RDWR)
        except OSError as e:
            self._fail("the next segment cannot be created", e)
        os.close(self._fd)
        self._fd, self.path, self._header, self.at = fd, path, header, at
        self._size, self._is_sealed, self._torn, self.failure = len(data), False, False, None

    def _settle(self, last: Frame | Seal) -> None:
        """Write unacknowledged bytes again: after a failed sync they may be in memory only."""
        start, end = last.start.offset, last.end.offset
        self._disk.write_all(self._fd, os.pread(self._fd, end - start, start), start)
        self._disk.sync(self._fd)
        self._acknowledge()

    def _torn_tail(self) -> LogRepaired | None:
        """Keep what a crash left of a batch as a blob, and say so."""
        if self._size > self.at.offset and (torn := torn_tail(self._run, self.at)):
            sha = Blobs(self._run, self._disk).put(torn)
            return LogRepaired(offset=self.at.offset, n_bytes=len(torn), sha=sha)
        return None


def _refuse_last_numbers(cursor: Cursor) -> None:
    at = cursor.at
    if at.epoch >= MAX_EPOCH or at.seq >= MAX_SEQ:
        reason = "no number is left for what would follow"
        raise LogCorruptError(cursor.path, at.offset, at.seq, reason)


def _renew(run: Path, path: Path, disk: Disk) -> None:
    """Go on in new files, because a writer that may be alive has the old ones open."""
    disk.replace(path, path.read_bytes())
    disk.sync_folder(path.parent)
    Blobs(run, disk).begin_pack()


def _is_acknowledged(run: Path, end: Position) -> bool:
    mark = read_mark(run)
    return mark is not None and mark.seq >= end.seq


def _create_files(run: Path, disk: Disk) -> None:
    """Create what the run folder lacks, with durable names.

    Raises:
        LogCorruptError: the log is gone, although records of it were acknowledged.
    """
    path, mark = segment_path(run, 0), run / MARK_NAME
    if not holds_log(run):
        if known := read_mark(run):
            raise LogCorruptError(path, 0, 0, f"the file is gone, with {known.seq} records")
        path.parent.mkdir(exist_ok=True)
        log_id = disk.random(segments.LOG_ID_BYTES)
        disk.create(path, segments.pack_header(segments.new_header(log_id, codec.SCHEMA))[0])
    if not mark.exists():
        disk.create(mark, bytes(MARK_BYTES))  # full size now, so that no disk is full later
    for folder in (path.parent, run, run.parent):
        disk.sync_folder(folder)
