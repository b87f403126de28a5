"""Laws of the codec: what is written reads back, validated or not, and nothing crashes a reader."""

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from events import codec
from events.errors import LogCorruptError, LogSchemaError
from events.frames import Frame, Position
from events.vocabulary import AnyEvent, Record
from tests.support.strategies import records, values

KINDS = get_args(get_args(AnyEvent)[0])
NOTHING = Position(b"", 0, 0, 0, b"", 0)


def decoded(body: bytes, n: int) -> tuple[Record, ...]:
    return codec.decode(Path("log"), Frame(NOTHING, Position(b"", 0, 0, n, b"", 0), body))


def anatomy(value: Any) -> Any:
    """All that tells a value from another, types and the state of pydantic objects included."""
    if isinstance(value, BaseModel):
        state = value.__getstate__()
        return type(value), {name: anatomy(part) for name, part in state.items()}
    if isinstance(value, tuple):
        return type(value), [anatomy(part) for part in value]
    if isinstance(value, dict):
        return type(value), [(name, anatomy(part)) for name, part in value.items()]
    return type(value), repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_trusted_bytes_give_what_validated_ones_do(kind: type, data: st.DataObject) -> None:
    """Which way a record was read must be nobody's concern: equal, of equal types, all the way."""
    record = Record(0, 1, "director", data.draw(values(kind)), (3, 4))
    body, packed = codec.pack([record])

    (read,), (checked,) = codec.trusted(body), decoded(body, 1)

    assert read == checked == packed[0] == record
    assert anatomy(read) == anatomy(checked)
    assert repr(read) == repr(checked)
    assert read.as_json() == checked.as_json()
    assert anatomy(pickle.loads(pickle.dumps(read))) == anatomy(checked)
    with suppress(TypeError):  # an event with a dictionary has no hash
        assert hash(read) == hash(checked)


@settings(max_examples=60, deadline=None)
@given(batch=records())
def test_a_batch_read_back_is_written_as_before(batch: list[Record]) -> None:
    """An export is imported to the same bytes, however its records were read."""
    body, _ = codec.pack(batch)

    assert codec.encode(codec.trusted(body)) == body
    assert codec.encode(decoded(body, len(batch))) == body


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
odd_records = st.lists(
    st.tuples(
        junk, junk, junk, junk | st.fixed_dictionaries({"kind": st.just("turn_failed")}), junk
    ),
    max_size=2,
)


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=40) | (junk | odd_records).map(msgpack.packb))
def test_no_body_crashes_a_reader(body: bytes) -> None:
    """Whatever passes the checksums is read or refused as what it is."""
    with suppress(LogSchemaError, LogCorruptError):
        decoded(body, 1)
    with suppress(ValueError):
        codec.trusted(body)
