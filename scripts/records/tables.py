"""Write the log of a run as Parquet tables.

``records.parquet`` holds every record, its event as JSON, and all else that is needed to make the
same log again: the batch of each record and its writer's epoch, and in its metadata the log's id,
how it is divided into segments, and its head.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from events import codec
from events.cursor import Cursor
from events.frames import Frame
from events.segments import HEADER_BYTES
from events.vocabulary import Record
from scripts.records.again import Again, Part
from scripts.records.columns import Column, column, columns
from scripts.records.kinds import MODELS

RECORDS = "records"
LOG_ID = "kernelwright.log_id"
PARTS = "kernelwright.segments"
HEAD = "kernelwright.head"
CHUNK = 20_000
"""Records per row group."""

COMMON: Mapping[str, Column] = {
    "seq": column(int),
    "time": Column(pa.timestamp("ns", tz="UTC"), lambda time_ns: time_ns),
    "actor": column(str),
    "because": column(tuple[int, ...]),
}
"""The first columns of every table."""
WHOLE: Mapping[str, Column] = {
    **COMMON, "kind": column(str), "event": column(str), "batch": column(int),
    "epoch": column(int),
}  # fmt: skip
"""Of `RECORDS`."""


class Written(NamedTuple):
    """What the tables hold."""

    n_records: int
    n_tables: int
    head: str
    """Of the run."""
    import_head: str
    """Of the log that an import makes: another one if an older version wrote the run."""


def write_tables(run: Path, folder: Path) -> Written:
    """Write one table per kind of event that there is, and that of all records.

    Raises:
        LogError: there is no log, or it is damaged.
    """
    cursor = Cursor(run)
    copy = _Copy(cursor)
    with ExitStack() as stack:
        tables = _Tables(folder, stack)
        for number, (records, epoch) in enumerate(copy.batches()):
            tables.add(number, epoch, records)
        n_tables = tables.finish(copy.about())
    return Written(copy.again.at.seq, n_tables, cursor.at.chain.hex(), copy.again.at.chain.hex())


class _Copy:
    """Makes the log again that an import of the tables will make, as it is read."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._parts: list[Part] = []
        self.again = Again(cursor.header.log_id, lambda segment, data: None)

    def batches(self) -> Iterator[tuple[tuple[Record, ...], int]]:
        """Iterate over the batches, each with the epoch of its writer."""
        for step in self._cursor.steps():
            epoch = step.end.epoch
            if step.start.offset == HEADER_BYTES:
                self._begin()
            if isinstance(step, Frame):
                yield self.again.add(codec.decode(self._cursor.path, step), epoch), epoch
            else:
                self.again.seal(epoch)
                self._parts[-1] = self._parts[-1]._replace(sealed_by=epoch)
        if self._cursor.at.offset == HEADER_BYTES:
            self._begin()

    def about(self) -> dict[str, str]:
        """What an import needs beside the records."""
        log_id, head = self._cursor.header.log_id, self.again.at.chain
        return {LOG_ID: log_id.hex(), PARTS: json.dumps(self._parts), HEAD: head.hex()}

    def _begin(self) -> None:
        epoch = self._cursor.header.epoch
        self._parts.append(Part(self.again.at.seq, epoch, None))
        self.again.begin(epoch)


class _Tables:
    """The open tables of an export, and the rows that wait to be written."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._columns: dict[str, Mapping[str, Column]] = {RECORDS: WHOLE}
        self._rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        # Opened first, and so closed last: an export that was broken off has no list of records.
        self._writers: dict[str, pq.ParquetWriter] = {RECORDS: self._open(RECORDS)}

    def add(self, number: int, epoch: int, records: Sequence[Record]) -> None:
        """Take the records of a batch of writer ``epoch``."""
        for record in records:
            event = record.event.model_dump(mode="json")
            kind = event.pop("kind")
            common = {
                "seq": record.seq,
                "time": record.time_ns,
                "actor": record.actor,
                "because": record.because,
            }
            batch = {"batch": number, "epoch": epoch}
            whole = {"kind": kind, "event": json.dumps(event), **batch}
            self._rows[RECORDS].append({**common, **whole})
            self._rows[kind].append({**common, **event})
        if len(self._rows[RECORDS]) >= CHUNK:
            self._flush()

    def finish(self, about: dict[str, str]) -> int:
        """Write what waits and a few words about it all; return the number of tables."""
        self._flush()
        self._writers[RECORDS].add_key_value_metadata(about)
        return len(self._writers)

    def _flush(self) -> None:
        for name, rows in self._rows.items():
            if name not in self._writers:
                self._columns[name] = {**COMMON, **columns(MODELS[name])}
                self._writers[name] = self._open(name)
            self._writers[name].write_table(_table(self._columns[name], rows))
        self._rows.clear()

    def _open(self, name: str) -> pq.ParquetWriter:
        schema = _schema(self._columns[name])
        path = self._folder / f"{name}.parquet"
        return self._stack.enter_context(pq.ParquetWriter(path, schema, compression="zstd"))


def _schema(of: Mapping[str, Column]) -> Any:
    return pa.schema([(name, column.type) for name, column in of.items()])


def _table(of: Mapping[str, Column], rows: Sequence[Mapping[str, Any]]) -> Any:
    arrays = [_array(column, [row[name] for row in rows]) for name, column in of.items()]
    return pa.Table.from_arrays(arrays, schema=_schema(of))


def _array(of: Column, values: Sequence[Any]) -> Any:
    store: Callable[[Any], Any] = of.store
    return pa.array([store(value) for value in values], type=of.type)
