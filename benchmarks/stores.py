"""Stores of a benchmark: the log with its blobs, and what else keeps events durably."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate

from benchmarks.noise import Rng
from events import codec, frames
from events.blobs import Blobs
from events.log import Entry, EventLog
from events.vocabulary import CandidateProposed, Record, TurnDropped

LARGE = 1000
"""Texts of more characters are blobs where a store has blobs."""
CYCLE_BYTES = 1 << 26


class Store(Protocol):
    """Something that keeps texts, one an event, durable when `append` returns."""

    def append(self, texts: Sequence[str]) -> None:
        """Keep a group of texts."""

    def close(self) -> None:
        """Release the files."""


def texts(rng: Rng, n: int, largest: int = 3) -> list[str]:
    """Texts of a run: 90 % of 200-400, 9 % of 2,000-8,000, 1 % of 50,000-200,000 characters.

    Args:
        rng: draws sizes and places.
        n: how many.
        largest: how many of the three sizes there are, the first ones.
    """
    source = "".join(path.read_text() for path in sorted(Path(frames.__file__).parent.glob("*.py")))
    source *= 1 + 200_000 // len(source)
    shares = [0.9, 0.09, 0.01][:largest]
    sorts = rng.choice(largest, n, p=[share / sum(shares) for share in shares])
    lengths = rng.integers([200, 2_000, 50_000], [400, 8_000, 200_000], (n, 3))[range(n), sorts]
    starts = rng.integers(0, len(source) - lengths)
    return [
        f"{rng.integers(2**62):016x}{source[start : start + length - 16]}"
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]


class Kernelwright:
    """The log of this project; large texts are blobs, durable before the event that names them."""

    def __init__(self, folder: Path) -> None:
        self._log = EventLog.open(folder, lambda: 0)
        self._blobs = Blobs(folder)

    def append(self, texts: Sequence[str]) -> None:
        """Store the large texts and append events of all."""
        large = [text for text in texts if len(text) > LARGE]
        names = iter(self._blobs.put_all(text.encode() for text in large))
        events = [
            _proposed(next(names)) if len(text) > LARGE else TurnDropped(turn=1, reason=text)
            for text in texts
        ]
        self._log.append([Entry(event, "director", (1,)) for event in events])

    def close(self) -> None:
        """Release the log."""
        self._log.close()


def _proposed(sha: str) -> CandidateProposed:
    return CandidateProposed(
        candidate=1, kernel="k", form="step", parent=None, hypothesis="", source=sha,
        normalized=sha, author="optimizer/catalogue",
    )  # fmt: skip


class Sqlite:
    """A table of bodies as the log encodes them; WAL, synchronous=FULL, one transaction a group."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "events.db")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB)")

    def append(self, texts: Sequence[str]) -> None:
        """Insert the events, texts and all, and commit."""
        events = (TurnDropped(turn=1, reason=text) for text in texts)
        records = (Record(0, 0, "director", event, (1,)) for event in events)
        rows = [(codec.encode([record]),) for record in records]
        self._db.executemany("INSERT INTO events (body) VALUES (?)", rows)
        self._db.commit()

    def close(self) -> None:
        """Close the database."""
        self._db.close()


class History(Aggregate):
    """The aggregate of one run in the `eventsourcing` library."""

    class Happened(Aggregate.Event):
        """An event of the run."""

        what: dict[str, Any]

        def apply(self, aggregate: Any) -> None:
            """Leave the aggregate as it is."""


class Histories(Application[UUID]):
    """The application of the `eventsourcing` library over it."""

    log_section_size = 1000


class Eventsourcing:
    """The library of that name on SQLite: its application, its mapper, its recorder."""

    def __init__(self, folder: Path) -> None:
        database = str(folder / "library.db")
        env = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": database}
        self._app = Histories(env=env)
        self._begin()

    def another(self) -> Self:
        """Another run of the same application."""
        other = copy(self)
        other._begin()
        return other

    def append(self, texts: Sequence[str]) -> None:
        """Save one event a text in one transaction."""
        self._save([TurnDropped(turn=1, reason=text).model_dump() for text in texts])

    def append_records(self, records: Sequence[Record]) -> None:
        """Save whole records in one transaction."""
        self._save([record.as_json() for record in records])

    def notified(self) -> Iterator[dict[str, Any]]:
        """What was saved, in order, by its notification log and mapper."""
        start: int | None = 1
        while start is not None:
            section = self._app.notification_log.select(start, limit=1000)
            for notification in section:
                event = self._app.mapper.to_domain_event(notification)
                if isinstance(event, History.Happened):
                    yield event.what
            start = section[-1].id + 1 if section else None

    def get(self, n: int) -> History:
        """The aggregate, from its first ``n`` events."""
        found: History = self._app.repository.get(self._history.id, version=n)
        return found

    def close(self) -> None:
        """Close the application."""
        self._app.close()

    def _begin(self) -> None:
        self._history = History()
        self._app.save(self._history)

    def _save(self, many: Sequence[dict[str, Any]]) -> None:
        for what in many:
            self._history.trigger_event(History.Happened, what=what)
        self._app.save(self._history)


def made(folder: Path) -> Path:
    """The folder, newly made."""
    folder.mkdir(parents=True)
    return folder


class Raw:
    """The bytes of the texts into a file of zeros, and one fdatasync: what the disk can do."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "raw", os.O_RDWR | os.O_CREAT)
        self._at = 0
        os.pwrite(self._fd, bytes(CYCLE_BYTES), 0)
        os.fdatasync(self._fd)

    def append(self, texts: Sequence[str]) -> None:
        """Write and sync; at the end of the file, begin again."""
        data = "".join(texts).encode()
        if self._at + len(data) > CYCLE_BYTES:
            self._at = 0
        os.pwrite(self._fd, data, self._at)
        os.fdatasync(self._fd)
        self._at += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
