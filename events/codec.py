"""How records become the body of a frame, and how a body is read.

A body is msgpack: an array of records, each an array of the values of `Record` in their order. An
event and the values in it are maps from field to value. The version of the event follows as a
sixth value if it is not 1.
"""

import hashlib
import json
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgpack
from pydantic import TypeAdapter, ValidationError

from events.builders import model_builder
from events.errors import LogCorruptError, LogSchemaError
from events.frames import MAX_BODY_BYTES, Frame
from events.upcasters import UPCASTERS, Chains, upcast, version
from events.vocabulary import AnyEvent, Record


class Outline(NamedTuple):
    """What a record is about."""

    kind: str
    candidate: int | None
    """That its event names as its own."""
    because: Sequence[int]


Row = tuple[int, int, str, AnyEvent | dict[str, Any], Sequence[int]]

_BROKEN_PROMISE = "not the records that its segment's header promises"
_RECORDS = TypeAdapter(tuple[Record, ...])
_BUILDERS = {
    model.model_fields["kind"].default: model_builder(model)
    for model in get_args(get_args(AnyEvent)[0])
}
_stored_fields = attrgetter("__dict__")


def pack(rows: Sequence[Row]) -> tuple[bytes, tuple[Record, ...]]:
    """Return the body of a frame, and its records as a reader will get them.

    Every value is validated, however it was made, and the body is written from what validation
    made of it; so `decode` and `trusted` agree on the body, and it need not be read back.

    Args:
        rows: records, or their values, of which an event may be a dictionary of its fields.

    Raises:
        ValueError: something is not as its type says, or cannot be written down; see `encode`.
    """
    try:
        records = _RECORDS.validate_python(rows)
    except ValidationError as e:
        raise ValueError(_unexpected(e)) from e
    return encode(records), records


def encode(records: Sequence[Record], chains: Chains = UPCASTERS) -> bytes:
    """Return the body of a frame of records that were read or validated before.

    Raises:
        ValueError: the body is too long, a number does not fit into 64 bits, or a text is not
            Unicode.
    """
    rows = [_row(record, chains) for record in records]
    try:
        body: bytes = msgpack.packb(rows, default=_stored_fields)
    except AttributeError as e:
        raise ValueError("a number does not fit into 64 bits") from e
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"{len(body)} bytes in one batch: large values belong into blobs")
    return body


def decode(path: Path, frame: Frame, chains: Chains = UPCASTERS) -> tuple[Record, ...]:
    """Return the records of a frame, brought to today's versions and validated.

    Raises:
        LogCorruptError: they are not numbered as the frame's header says.
        LogSchemaError: an event has a kind, a version or a field that is not known here.
    """
    at = frame.start
    try:
        rows = [_today(row, chains) for row in _unpacked(frame.body)]
        records = _RECORDS.validate_python(rows)
    except ValidationError as e:
        raise LogSchemaError(path, at.offset, at.seq, _unexpected(e)) from e
    except (ValueError, TypeError, LookupError) as e:
        raise LogSchemaError(path, at.offset, at.seq, str(e)) from e
    numbers = [record.seq for record in records]
    if at.seq + len(numbers) != frame.end.seq or numbers != list(range(at.seq, frame.end.seq)):
        raise LogCorruptError(path, at.offset, at.seq, "the records' own numbers do not fit")
    return records


def trusted(body: bytes) -> tuple[Record, ...]:
    """Return the records of a body that is known to be what a writer with this `SCHEMA` wrote.

    They are what `decode` returns, sooner, because nothing is validated.

    Raises:
        ValueError: no such writer can have written it.
    """
    try:
        return tuple(
            [
                Record(seq, time_ns, actor, _BUILDERS[fields["kind"]](fields), because)
                for seq, time_ns, actor, fields, because, *_ in _unpacked(body)
            ]
        )
    except (ValueError, TypeError, LookupError, AttributeError) as e:
        raise ValueError(f"{_BROKEN_PROMISE}: {e}") from e


def outlines(body: bytes) -> list[Outline]:
    """Return what the records of a body that `trusted` takes are about, without building them.

    Raises:
        ValueError: as `trusted`.
    """
    try:
        return [
            Outline(fields["kind"], fields.get("candidate"), because)
            for _, _, _, fields, because, *_ in _unpacked(body)
        ]
    except (ValueError, TypeError, LookupError, AttributeError) as e:
        raise ValueError(f"{_BROKEN_PROMISE}: {e}") from e


def outline(record: Record) -> Outline:
    """Return what a record is about."""
    event = record.event
    return Outline(event.kind, getattr(event, "candidate", None), record.because)


def fingerprint(records: TypeAdapter[Any], chains: Chains) -> bytes:
    """A digest of all that decides how stored records are read: types, limits, versions."""
    versions = {kind: version(kind, chains) for kind in chains}
    told = json.dumps([_bare(records.json_schema()), versions], sort_keys=True)
    return hashlib.sha256(told.encode()).digest()


def _row(record: Record, chains: Chains) -> tuple[Any, ...]:
    now = version(record.event.kind, chains)
    return record if now == 1 else (*record, now)


def _today(row: Any, chains: Chains) -> tuple[Any, ...]:
    """A stored record, with the fields that its event has today."""
    seq, time_ns, actor, fields, because, stored = row if len(row) == 6 else (*row, 1)
    if fields["kind"] not in _BUILDERS:
        raise ValueError(f"unknown event kind '{fields['kind']}'")
    return seq, time_ns, actor, upcast(fields, stored, chains), because


def _unpacked(body: bytes) -> Any:
    try:
        return msgpack.unpackb(body, use_list=False)
    except ValueError as e:
        raise ValueError(f"not msgpack: {e}") from e


def _unexpected(error: ValidationError) -> str:
    """What of the records is not understood, and where."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"unexpected content at {where}: {first['msg']}"


def _bare(schema: Any) -> Any:
    """A JSON schema without what is for people."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    about = {k for k in ("title", "description") if isinstance(schema.get(k), str)}
    return {k: _bare(v) for k, v in schema.items() if k not in about}


SCHEMA = fingerprint(_RECORDS, UPCASTERS)
"""Of the vocabulary here. Bodies that were written under the same one may be read by `trusted`."""
