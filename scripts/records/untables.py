"""Make the log of a run again from ``records.parquet``, to the byte."""

import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from events import codec, frames
from events.vocabulary import Record
from scripts.records.tables import HEAD, HEADER, RECORDS, WHOLE
from scripts.runs import UsageError


class Rebuilt(NamedTuple):
    """A log that was made again."""

    data: bytes
    """Of the log file."""
    records: list[Record]
    head: str


def rebuild(folder: Path) -> Rebuilt:
    """Read the records of an export and encode them as the run did.

    Raises:
        UsageError: it is no export, or not the records that were exported.
    """
    path = folder / f"{RECORDS}.parquet"
    if not path.is_file():
        raise UsageError(f"{folder} is no export of a run: it has no {path.name}")
    try:
        with pq.ParquetFile(path) as file:
            about = {k.decode(): v.decode() for k, v in (file.metadata.metadata or {}).items()}
            rebuilt = _encoded(path, bytes.fromhex(about[HEADER]), _rows(file))
    except (pa.ArrowException, ValueError, KeyError, TypeError) as e:
        raise UsageError(f"{path} was not written by `log export`, or is damaged: {e}") from e
    if rebuilt.head != about[HEAD]:
        raise UsageError(
            f"{path} gives a log with the head {rebuilt.head}, but {about[HEAD]} was exported: "
            "the table has been changed, or another version of kernelwright wrote it"
        )
    return rebuilt


def _encoded(path: Path, header: bytes, rows: Iterator[dict[str, Any]]) -> Rebuilt:
    at = frames.start(path, header)
    parts, records = [header], list[Record]()
    for _, batch in groupby(rows, itemgetter("batch")):
        body, together = codec.pack([_values(row) for row in batch])
        data, at = frames.pack(at, body, len(together))
        records += together
        parts.append(data)
    return Rebuilt(b"".join(parts), records, at.chain.hex())


def _values(row: dict[str, Any]) -> codec.Row:
    event = {"kind": row["kind"], **json.loads(row["event"])}
    return row["seq"], row["time"], row["actor"], event, row["because"]


def _rows(file: pq.ParquetFile) -> Iterator[dict[str, Any]]:
    for group in file.iter_batches(columns=list(WHOLE)):
        times = group.column("time").cast(pa.int64()).to_pylist()
        others = group.drop_columns(["time"]).to_pylist()
        yield from ({**row, "time": time} for row, time in zip(others, times, strict=True))
