"""Facts that are carried from one run into another: in a file, as claims to be checked there."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from events.projections.knowledge import Knowledge
from events.projections.state import State
from events.vocabulary import FactProposed, Prediction, Probe, Sha, Topic, Value

MAX_BYTES = 16 << 20
"""Of a file with facts."""
MAX_FACTS = 1000
"""In a file: all of them go into the first record of a run."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=1 << 20)]


class CarriedProbe(Value):
    """A probe with its program; otherwise as `Probe`."""

    kernel: Name
    source: Text
    predicts: Prediction
    signature: Annotated[str, Field(max_length=2000)] = ""
    low: float | None = None
    high: float | None = None


class CarriedFact(Value):
    """A fact that was confirmed where it comes from."""

    fact: int = Field(ge=1)
    """Its number there."""
    record: int = Field(ge=0)
    """Sequence number of the record that states it there."""
    topic: Topic
    kernel: Annotated[str, Field(max_length=200)]
    """"" for the whole target."""
    claim: Annotated[str, Field(min_length=1, max_length=2000)]
    passage: Text | None = None
    """Documents: the text that it rests on."""
    probe: CarriedProbe | None = None
    """None: nobody knows how to check it again."""


class Carried(Value):
    """The facts of one run, with their provenance."""

    format: Literal[1] = 1
    run: Name
    """Name of the campaign that they come from."""
    head: Sha
    """Chain hash over the log that they were taken from."""
    target: Name
    toolchain: dict[str, str]
    """Fingerprint under which all of them were confirmed."""
    facts: Annotated[tuple[CarriedFact, ...], Field(max_length=MAX_FACTS)]


def pack(state: State, head: str, text: Callable[[Sha], str]) -> Carried:
    """Gather the confirmed facts of a run with all that it takes to check them again.

    Args:
        state: of the run.
        head: of its log.
        text: reads one of its blobs.

    Raises:
        ValueError: there are more than `MAX_FACTS`, or one has a text that is too long.
    """
    knowledge, start = state.knowledge, state.begun
    confirmed = [number for number, is_now in knowledge.states.items() if is_now == "confirmed"]
    return Carried(
        run=start.campaign.name,
        head=head,
        target=start.campaign.target,
        toolchain=state.toolchain,
        facts=tuple(_carried(knowledge, number, text) for number in confirmed),
    )


def unpack(data: bytes) -> Carried:
    """Read a file of facts.

    Raises:
        ValueError: it is none; in one line.
    """
    try:
        return Carried.model_validate_json(data)
    except ValidationError as e:
        first = e.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"'{place}': {first['msg']}" if place else first["msg"]
        raise ValueError(" ".join(reason.split())) from None


def misfit(fact: CarriedFact, kernels: Sequence[str]) -> str:
    """Why a run of ``kernels`` has no use for a fact; "" if it has."""
    if fact.kernel not in ("", *kernels):
        return f"it is about {fact.kernel}"
    if fact.probe and fact.probe.kernel not in kernels:
        return f"it is checked on {fact.probe.kernel}"
    return ""


def _carried(knowledge: Knowledge, number: int, text: Callable[[Sha], str]) -> CarriedFact:
    fact = knowledge.facts[number]
    passage = fact.passage if isinstance(fact, FactProposed) else None
    return CarriedFact(
        fact=number,
        record=knowledge.records[number],
        topic=fact.topic,
        kernel=fact.kernel,
        claim=fact.claim,
        passage=None if passage is None else text(passage),
        probe=None if fact.probe is None else _with_program(fact.probe, text),
    )


def _with_program(probe: Probe, text: Callable[[Sha], str]) -> CarriedProbe:
    return CarriedProbe.model_validate(probe.model_dump() | {"source": text(probe.source)})
