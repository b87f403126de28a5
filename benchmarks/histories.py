"""A long run for a benchmark: the records of a short one, over and over, numbered on."""

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from events.disk import Disk
from events.log import Entry, EventLog, read
from events.vocabulary import Record, RunFinished, RunStarted, SearchClosed
from tests.support.runs import begin, campaign

CANDIDATES = (
    "candidate", "incumbent", "parent", "twin", "onto", "rebased_from", "premise_parent", "best",
)  # fmt: skip
TURNS = ("turn", "thread")


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
    """``n`` records that every projection takes: many campaigns as if they were one."""
    return islice(_endless(short_run()), n)


def write(run: Path, records: Iterable[Record]) -> None:
    """Append records one by one, as a live run does, but without syncs."""
    times = (0 for _ in count())
    with EventLog.open(run, lambda: next(times), QuickDisk()) as log:
        for record in records:
            log.append([Entry(record.event, record.actor, record.because)])


def _endless(short: list[Record]) -> Iterator[Record]:
    yield short[0]
    body = [r for r in short if not isinstance(r.event, RunStarted | SearchClosed | RunFinished)]
    n_candidates = max(getattr(r.event, "candidate", None) or 0 for r in body)
    n_turns = max(getattr(r.event, "turn", None) or 0 for r in body)
    number = {record.seq: k for k, record in enumerate(body, start=1)}
    for turn in count():
        for record in body:
            moved = _moved(record, turn * n_candidates, turn * n_turns)
            shift = turn * len(body)
            because = tuple(number.get(seq, 0) + shift for seq in record.because)
            seq = number[record.seq] + shift
            yield record._replace(seq=seq, because=because, event=moved)


def _moved(record: Record, candidates: int, turns: int) -> Any:
    """The event of a record with other candidates and turns."""
    fields = dict.fromkeys(CANDIDATES, candidates) | dict.fromkeys(TURNS, turns)
    kind = type(record.event).model_fields
    numbers = {name: getattr(record.event, name) for name in fields if name in kind}
    update = {name: n + fields[name] for name, n in numbers.items() if isinstance(n, int)}
    return record.event.model_copy(update=update)
