"""Records as lines of text: short for people, whole as JSON."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from events.vocabulary import Record
from scripts.plain import one_line

WIDTH = 160
"""Most characters of what a line says of an event."""
TEXT_WIDTH = 60
"""Most characters of one text in it."""
HIDDEN = ("kind", "secret_seed")
EMPTY: tuple[object, ...] = (None, "", (), {})
_SHA = re.compile(r"[0-9a-f]{64}")


def moment(time_ns: int) -> str:
    """UTC to the millisecond."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d}Z"


def as_json(record: Record) -> str:
    """A whole record as one line of ASCII."""
    return json.dumps(record.as_json())


def as_text(record: Record) -> str:
    """A record for people: number, time, actor, kind, main fields, and what it follows from."""
    because = f"  <- {','.join(map(str, record.because))}" if record.because else ""
    head = f"{record.seq:>7}  {moment(record.time_ns)}  {one_line(record.actor):<12}"
    return f"{head}  {record.event.kind:<22}  {_fields(record.event.model_dump())}{because}"


def _fields(event: dict[str, Any]) -> str:
    told = {k: v for k, v in event.items() if k not in HIDDEN and v not in EMPTY}
    shown = (f"{k}={_value(v)}" for k, v in told.items())
    return _cut(" ".join(shown), WIDTH)


def _value(value: Any) -> str:
    match value:
        case str() if _SHA.fullmatch(value):
            return value[:12]
        case str():
            return json.dumps(_cut(one_line(value), TEXT_WIDTH), ensure_ascii=False)
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case dict():
            named = (f"{one_line(str(k))}={_value(v)}" for k, v in value.items() if v is not None)
            return f"{{{_cut(' '.join(named), TEXT_WIDTH)}}}"
        case tuple() | list():
            return f"[{_cut(' '.join(map(_value, value)), TEXT_WIDTH)}]"
        case _:
            return str(value)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
