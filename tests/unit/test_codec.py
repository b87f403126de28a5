"""Bodies of frames: what is written, what is refused, and what older versions wrote."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgpack
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from events import codec
from events.errors import LogSchemaError
from events.frames import Frame, Position
from events.upcasters import Chains, Fields
from events.vocabulary import AnyEvent, JobFailed, Record, RunInterrupted, Spend, TurnFailed


def renamed(fields: Fields) -> Fields:
    """`why` became `reason`."""
    return {"kind": fields["kind"], "reason": fields["why"]}


CHAINS: Chains = {"run_interrupted": (renamed,)}
STOPPED = Record(0, 7, "director", RunInterrupted(reason="x"), (1,))


def decoded(body: bytes, chains: Chains) -> tuple[Record, ...]:
    start, end = (Position(b"", 0, 40, seq, b"", 0) for seq in (0, 1))
    return codec.decode(Path("log"), Frame(start, end, body), chains)


def body(*more: object, **event: object) -> bytes:
    """A body of one record with any event."""
    return bytes(msgpack.packb([(0, 7, "director", event, (1,), *more)]))


# ---- versions ------------------------------------------------------------------------------


def test_an_event_of_an_older_version_is_read_as_todays() -> None:
    """A log outlives the vocabulary that it was written in."""
    assert decoded(body(kind="run_interrupted", why="x"), CHAINS) == (STOPPED,)


def test_the_version_is_written_once_a_kind_has_more_than_one() -> None:
    """A log without old kinds pays nothing for it."""
    first, second = codec.encode([STOPPED], {}), codec.encode([STOPPED], CHAINS)

    assert second == body(2, kind="run_interrupted", reason="x", order=None)
    assert first == body(kind="run_interrupted", reason="x", order=None)
    assert decoded(second, CHAINS) == codec.trusted(second) == (STOPPED,)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (body(3, kind="run_interrupted"), "'run_interrupted' in version 3, known up to version 2"),
        (body("2", kind="run_interrupted"), "not supported between"),
        (body(kind="comet_seen"), "unknown event kind 'comet_seen'"),
        (body(9, kind="comet_seen"), "unknown event kind 'comet_seen'"),
        (body(kind="edits_reapplied", candidate=1, outcome={"type": "ode"}), "Input tag 'ode'"),
        (body(kind="search_closed", reason="x", mood="bad"), "search_closed.mood: Extra inputs"),
        (body(kind="search_closed", reason=4), "search_closed.reason: Input should be"),
    ],
)
def test_what_a_newer_version_may_have_written_is_refused_by_name(
    stored: bytes, reason: str
) -> None:
    """The user is to learn what it is that this version does not know."""
    with pytest.raises(LogSchemaError, match=f"{reason}.*newer version"):
        decoded(stored, CHAINS)


# ---- what is written -----------------------------------------------------------------------


def packed(event: AnyEvent | dict[str, Any]) -> Any:
    """The event as it was read from what was written of it."""
    body, (record,) = codec.pack([(0, 7, "director", event, ())])
    assert codec.trusted(body) == (record,)
    return record.event


def test_a_number_is_written_as_the_type_says() -> None:
    """A reader that does not validate would give a whole number where a fraction is due."""
    failed = JobFailed(job=1, arm="device", reason="", device_s=0.5)
    whole = packed(failed.model_copy(update={"device_s": 3}))

    assert repr(whole.device_s) == "3.0"


def test_an_event_may_be_given_by_its_fields() -> None:
    """Tables that are imported hold no objects, and lists for tuples."""
    fields = {"kind": "blobs_pruned", "blob_kinds": ["reply"], "n_blobs": 1, "n_bytes": 2}

    assert packed({**fields, "list": "0" * 64}).blob_kinds == ("reply",)


@pytest.mark.parametrize(
    ("reason", "why"), [(3, "valid string"), ("\ud800", "surrogates"), (None, "valid string")]
)
def test_a_value_that_is_not_as_its_type_says_is_refused(reason: Any, why: str) -> None:
    """A copy with changes was never validated, and one unreadable record spoils a log."""
    with pytest.raises(ValueError, match=why):
        packed(STOPPED.event.model_copy(update={"reason": reason}))


def test_a_wrong_value_inside_a_value_is_refused_too() -> None:
    """Validation goes all the way down, past objects that look ready-made."""
    spent = Spend().model_copy(update={"tokens": "many"})
    failed = TurnFailed(turn=1, reason="", usage=None, spent=Spend())

    with pytest.raises(ValueError, match=r"spent.tokens: Input should be a valid integer"):
        packed(failed.model_copy(update={"spent": spent}))


def test_a_number_beyond_64_bits_is_refused() -> None:
    """Msgpack has no form for it."""
    with pytest.raises(ValueError, match="64 bits"):
        codec.pack([STOPPED._replace(because=(2**70,))])


# ---- the fingerprint -----------------------------------------------------------------------


class Old(BaseModel):
    """A vocabulary of one kind."""

    kind: Literal["old"] = "old"
    n: int = Field(ge=0)


def print_of(hint: Any, chains: Chains) -> bytes:
    return codec.fingerprint(TypeAdapter(hint), chains)


def changed(**fields: Any) -> type[BaseModel]:
    """The same class with other fields or another docstring."""
    annotations = {"kind": Literal["old"], "n": int, **fields.pop("types", {})}
    body = {"kind": "old", "n": Field(ge=0), **fields, "__annotations__": annotations}
    return type("Old", (BaseModel,), {"__module__": __name__, **body})


@pytest.mark.parametrize(
    "other",
    [
        changed(types={"n": float}),
        changed(n=Field(ge=1)),
        changed(n=Field(default=1, ge=0)),
        changed(types={"m": int}),
        changed(types={"n": int | None}),
        changed(types={"n": Annotated[int, Field(lt=9)]}),
    ],
)
def test_the_fingerprint_tells_vocabularies_apart(other: type[BaseModel]) -> None:
    """Bytes that were written under another one must be validated."""
    assert print_of(other, {}) != print_of(Old, {})


def test_the_fingerprint_tells_versions_apart() -> None:
    """A new version may keep all types and change what a field means."""
    assert print_of(Old, {"old": (renamed,)}) != print_of(Old, {})


def test_the_fingerprint_is_not_of_words_for_people() -> None:
    """A better docstring changes nothing that is read."""
    assert print_of(changed(__doc__="Better said."), {}) == print_of(Old, {})


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    """A segment is read by other processes than the one that wrote it."""
    say = "from events.codec import SCHEMA; print(SCHEMA.hex())"
    root = Path(codec.__file__).parents[1]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", say], cwd=root, env={"PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == codec.SCHEMA.hex()
