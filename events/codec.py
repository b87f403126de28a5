"""How records become the body of a frame and how a body is read: msgpack of the models' fields."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
from pydantic import TypeAdapter, ValidationError

from events.errors import LogCorruptError, LogSchemaError
from events.frames import MAX_BODY_BYTES, Frame
from events.vocabulary import AnyEvent, Record

SCHEMA = hashlib.sha256(b"vocabulary 1").digest()
"""Fingerprint of the vocabulary in which records are written."""

_RECORDS = TypeAdapter(tuple[Record, ...])


def encode(records: Sequence[Record]) -> bytes:
    """Return the body of a frame.

    Raises:
        ValueError: a record cannot be written down as its type says, or the body is too long.
    """
    return pack_body([plain(r.seq, r.time_ns, r.actor, r.because, r.event) for r in records])


def plain(
    seq: int, time_ns: int, actor: str, because: tuple[int, ...], event: AnyEvent
) -> dict[str, Any]:
    """Return the fields of a record as `pack_body` takes them; see `Record` for what they are.

    Raises:
        ValueError: the event cannot be written down as its type says.
    """
    fields = event.model_dump(warnings="error")
    return {"seq": seq, "time_ns": time_ns, "actor": actor, "because": because, "event": fields}


def pack_body(records: Sequence[dict[str, Any]]) -> bytes:
    """Return the body of a frame.

    Raises:
        ValueError: the body is too long.
        TypeError: a field is of no type that msgpack knows.
        OverflowError: a number does not fit into 64 bits.
    """
    body: bytes = msgpack.packb(records)
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"{len(body)} bytes in one batch: large values belong into blobs")
    return body


def decode(path: Path, frame: Frame) -> tuple[Record, ...]:
    """Return the records of a frame.

    Raises:
        LogCorruptError: they are not numbered as the frame's header says.
        LogSchemaError: an event has a kind or a field that is not known here.
    """
    at = frame.start
    try:
        records = _RECORDS.validate_python(msgpack.unpackb(frame.body))
    except ValidationError as e:
        raise LogSchemaError(path, at.offset, at.seq, _unknown(e)) from e
    except ValueError as e:
        raise LogSchemaError(path, at.offset, at.seq, f"not msgpack: {e}") from e
    if [record.seq for record in records] != list(range(at.seq, frame.end.seq)):
        raise LogCorruptError(path, at.offset, at.seq, "the records' own numbers do not fit")
    return records


def _unknown(error: ValidationError) -> str:
    """What of an event is not understood; its kind, if that is it."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "union_tag_invalid":
        return f"unknown event kind '{first['ctx']['tag']}'"
    where = ".".join(str(part) for part in first["loc"])
    return f"unexpected content at {where}: {first['msg']}"
