"""A long run for a benchmark: the search of a short one, over and over, as if it went on."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from events.disk import Disk
from events.log import Entry, EventLog, read
from events.vocabulary import (
    AnyEvent,
    CandidateAccepted,
    CandidateProposed,
    HarnessChecked,
    KernelFinished,
    LearningRequested,
    MeasurementRequested,
    Record,
    Reply,
    RunFinished,
    RunStarted,
    SearchClosed,
)
from tests.support.runs import begin, campaign

NUMBERED = {
    **dict.fromkeys(
        ("candidate", "incumbent", "parent", "twin", "onto", "rebased_from", "premise_parent"),
        "candidate",
    ),
    "turn": "turn", "thread": "turn", "job": "job", "token": "token",
    "seq": "seq", "because": "because", "time_ns": "time",
}  # fmt: skip
"""What the numbers in a field are of."""
SHA = re.compile(r"[0-9a-f]{64}")
PLACE = re.compile(r'"@(\w+) (\w+)@"')
"""Where a record's text is another one in every repetition: what it is of, and what it was."""
TICK_NS = 1_000_000
RECORDS = TypeAdapter(list[Record])


class QuickDisk(Disk):
    """A disk that leaves durability to chance, to make a log quickly."""

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_folder(self, folder: Path) -> None:
        """Do nothing."""


def short_run() -> list[Record]:
    """The records of a campaign of the fake target, about 700."""
    with TemporaryDirectory() as folder:
        begin(Path(folder), campaign(max_candidates=100))
        return list(read(Path(folder)))


def long_run(n: int) -> Iterator[Record]:
    """``n`` records of one run that could have happened, but for its limits.

    The search of a short run is repeated on what it has made the best versions: with new
    candidates, sources, build failures, turns and jobs, without an opening and an end.
    """
    return islice(_endless(short_run()), n)


def write(run: Path, records: Iterable[Record]) -> None:
    """Append records one by one, as a live run does, but without syncs."""
    times = (0 for _ in count())
    with EventLog.open(run, lambda: next(times), QuickDisk()) as log:
        for record in records:
            log.append([Entry(record.event, record.actor, record.because)])


def _endless(short: list[Record]) -> Iterator[Record]:
    yield short[0]
    first = _without(short, _is_of_the_end)
    proposed = [r.event for r in first if isinstance(r.event, CandidateProposed)]
    kernel_of = {event.candidate: event.kernel for event in proposed}
    own = {event.candidate: event.kernel for event in proposed if event.parent is None}
    accepts = [r.event.candidate for r in first if isinstance(r.event, CandidateAccepted)]
    last = {kernel_of[candidate]: candidate for candidate in accepts}
    again = _text(_without(first, lambda event: _is_of_the_opening(event, own)))
    numbers = _Numbers()
    yield from numbers.renewed(_text(first))
    while True:
        numbers.repeat({candidate: last[kernel] for candidate, kernel in own.items()})
        yield from numbers.renewed(again)


def _without(records: Iterable[Record], is_left_out: Callable[[AnyEvent], bool]) -> list[Record]:
    """Leave out records, and the replies to the requests among them."""
    kept, left_out = [], set()
    for record in records:
        answers = isinstance(record.event, Reply) and record.because[0] in left_out
        if answers or is_left_out(record.event):
            left_out.add(record.seq)
        else:
            kept.append(record)
    return kept


def _is_of_the_end(event: AnyEvent) -> bool:
    if isinstance(event, MeasurementRequested):
        return event.purpose == "final"
    return isinstance(event, RunStarted | KernelFinished | SearchClosed | RunFinished)


def _is_of_the_opening(event: AnyEvent, own: Collection[int]) -> bool:
    if isinstance(event, LearningRequested):
        return event.topic != "rule"
    return isinstance(event, HarnessChecked) or getattr(event, "candidate", None) in own


def _text(records: Iterable[Record]) -> str:
    """Records as JSON, with places for all that is another in every repetition."""
    return json.dumps([_with_places(record.as_json(), "") for record in records])


def _with_places(value: Any, field: str) -> Any:
    match value:
        case dict():
            return {name: _with_places(item, name) for name, item in value.items()}
        case list() | tuple():
            return [_with_places(item, field) for item in value]
        case int() if field in NUMBERED and not isinstance(value, bool):
            return f"@{NUMBERED[field]} {value}@"
        case str() if field == "signature" and value:
            return f"@signature {sha256(value.encode()).hexdigest()[:16]}@"
        case str() if SHA.fullmatch(value) and field != "toolchain":
            return f"@sha {value}@"
        case _:
            return value


class _Numbers:
    """What stands at the places: each new thing has the next number of its sort."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}
        self._n: Counter[str] = Counter()
        self._n_repeats = 0

    def repeat(self, best: Mapping[int, int]) -> None:
        """Begin again, with the last repetition's candidates ``best`` in the place of others."""
        known = self._known
        self._known = {
            ("candidate", str(old)): known["candidate", str(new)] for old, new in best.items()
        }
        self._n_repeats += 1

    def renewed(self, text: str) -> list[Record]:
        """The records of one repetition."""
        return RECORDS.validate_json(PLACE.sub(self._filled, text))

    def _filled(self, place: re.Match[str]) -> str:
        sort, old = place.groups()
        match sort:
            case "sha":
                return f'"{old[:-8]}{self._n_repeats:08}"' if self._n_repeats else f'"{old}"'
            case "signature":
                return f'"{old} {self._n_repeats}"'
            case "because":
                return str(self._known.get(("seq", old), 0))
            case "time":
                return str(self._n["seq"] * TICK_NS)
            case _:
                return str(self._number(sort, old))

    def _number(self, sort: str, old: str) -> int:
        number = self._known.get((sort, old))
        if number is None:
            self._n[sort] += 1
            number = self._known[sort, old] = self._n[sort]
        return number
