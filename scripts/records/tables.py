"""Write the log of a run as Parquet tables.

``records.parquet`` holds every record, its event as JSON, and all else that is needed to make the
same log again: the batch of each record, and in its metadata the log's file header and head.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from events import codec, frames
from events.log import LOG_NAME, batches, read_start
from events.vocabulary import Record
from scripts.records.columns import Column, column, columns
from scripts.records.kinds import MODELS

RECORDS = "records"
HEADER = "kernelwright.log_header"
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
}  # fmt: skip
"""Of `RECORDS`."""


class Written(NamedTuple):
    """What the tables hold."""

    n_records: int
    n_tables: int
    head: str
    """Of the log that an import makes; the run's own, unless an older version wrote the run."""


def write_tables(run: Path, folder: Path) -> Written:
    """Write one table per kind of event that there is, and that of all records.

    Raises:
        LogError: there is no log, or it is damaged.
    """
    at = read_start(run)
    with ExitStack() as stack:
        tables = _Tables(folder, stack)
        for number, (_, records) in enumerate(batches(run)):
            _, at = frames.pack(at, codec.encode(records), len(records))
            tables.add(number, records)
        with (run / LOG_NAME).open("rb") as file:
            header = file.read(frames.FILE_HEADER_BYTES)
        n_tables = tables.finish({HEADER: header.hex(), HEAD: at.chain.hex()})
    return Written(at.seq, n_tables, at.chain.hex())


class _Tables:
    """The open tables of an export, and the rows that wait to be written."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._columns: dict[str, Mapping[str, Column]] = {RECORDS: WHOLE}
        self._rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        # Opened first, and so closed last: an export that was broken off has no list of records.
        self._writers: dict[str, pq.ParquetWriter] = {RECORDS: self._open(RECORDS)}

    def add(self, number: int, records: Sequence[Record]) -> None:
        """Take the records of a batch."""
        for record in records:
            event = record.event.model_dump(mode="json")
            kind = event.pop("kind")
            common = {
                "seq": record.seq,
                "time": record.time_ns,
                "actor": record.actor,
                "because": record.because,
            }
            whole = {"kind": kind, "event": json.dumps(event), "batch": number}
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
