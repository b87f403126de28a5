"""Make the log of a run again from ``records.parquet``, to the byte."""

import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from events import codec
from events.vocabulary import Record
from scripts.plain import one_line
from scripts.records.again import Again, Part
from scripts.records.tables import HEAD, LOG_ID, PARTS, RECORDS, WHOLE
from scripts.runs import UsageError

UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, struct.error)
"""What a table that was changed, or that another program wrote, can raise: Arrow's own errors and
those of its decompression, and what values of a wrong type or size cause here."""


class Rebuilt(NamedTuple):
    """A log that was made again."""

    segments: dict[int, bytes]
    """By the number of the first record."""
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
            parts = [Part._make(part) for part in json.loads(about[PARTS])]
            rebuilt = _encoded(bytes.fromhex(about[LOG_ID]), parts, _rows(file))
            exported = about[HEAD]
    except UNREADABLE as e:
        reason = f"was not written by `log export`, or is damaged: {one_line(str(e))}"
        raise UsageError(f"{path} {reason}") from e
    if rebuilt.head != exported:
        raise UsageError(
            f"{path} gives a log with the head {rebuilt.head}, but {exported} was exported: "
            "the table has been changed, or another version of kernelwright wrote it"
        )
    return rebuilt


def _encoded(log_id: bytes, parts: Sequence[Part], rows: Iterator[dict[str, Any]]) -> Rebuilt:
    pieces: defaultdict[int, list[bytes]] = defaultdict(list)
    again, records = Again(log_id, lambda first, data: pieces[first].append(data)), list[Record]()
    batches = groupby(rows, itemgetter("batch", "epoch"))
    for part, after in zip_longest(parts, parts[1:]):
        again.begin(part.epoch)
        while after is None or again.at.seq < after.first:
            key, batch = next(batches, (None, ()))
            if key is None:
                break
            records += again.add([_values(row) for row in batch], key[1])
        if part.sealed_by is not None:
            again.seal(part.sealed_by)
    whole = {first: b"".join(data) for first, data in pieces.items()}
    return Rebuilt(whole, records, again.at.chain.hex())


def _values(row: dict[str, Any]) -> codec.Row:
    event = {"kind": row["kind"], **json.loads(row["event"])}
    return row["seq"], row["time"], row["actor"], event, row["because"]


def _rows(file: pq.ParquetFile) -> Iterator[dict[str, Any]]:
    for group in file.iter_batches(columns=list(WHOLE)):
        times = group.column("time").cast(pa.int64()).to_pylist()
        others = group.drop_columns(["time"]).to_pylist()
        yield from ({**row, "time": time} for row, time in zip(others, times, strict=True))
