"""A run as it is read back: its records, the state they fold to, and its device jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from events.projections.state import State, replay
from events.vocabulary import (
    CandidateId,
    JobFailed,
    MeasurementRequested,
    PairsMeasured,
    ProgramsMeasured,
    Record,
    WorkAbandoned,
)
from scripts.runs import recorded

JobReply = PairsMeasured | ProgramsMeasured | JobFailed
TESTS = ("test", "canary")


@dataclass(frozen=True)
class Run:
    """One run, whole."""

    records: tuple[Record, ...]
    """All of them; the index is the sequence number."""
    state: State
    head: str
    """Chain hash over the log, hex."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The campaign's kernels, in its order."""
        return self.state.begun.campaign.kernels

    def hours(self, record: Record) -> float:
        """Hours between the first record and ``record``, pauses included."""
        return (record.time_ns - self.records[0].time_ns) / 3.6e12

    @cached_property
    def comparisons(self) -> dict[tuple[CandidateId, CandidateId], list["Comparison"]]:
        """The jobs that compared a candidate with a best version, by these two."""
        found: dict[tuple[CandidateId, CandidateId], list[Comparison]] = {}
        for record in self.records:
            if isinstance(record.event, PairsMeasured | JobFailed | WorkAbandoned):
                request = self.records[record.because[0]].event
                if isinstance(request, MeasurementRequested) and request.purpose in TESTS:
                    key = request.candidate, request.incumbent
                    found.setdefault(key, []).append(Comparison(request, record))
        return found


class Comparison(NamedTuple):
    """A job that compared a candidate with a best version, and the record that ended it."""

    request: MeasurementRequested
    record: Record


@dataclass(frozen=True)
class Job:
    """A device job that was answered."""

    seq: int
    """Of the reply."""
    request: MeasurementRequested
    reply: JobReply
    record: Record
    """The reply's."""
    device_s: float
    """Device seconds of the run when the job ended, its own included."""


def load(folder: Path) -> Run:
    """Read a run.

    Raises:
        UsageError: it stopped before its first event.
        LogError: there is no log, it is damaged, or of another version.
    """
    records, head = recorded(folder)
    return Run(tuple(records), replay(records), head)


def jobs(records: Sequence[Record]) -> tuple[Job, ...]:
    """Put each answered device job's request and reply together, in the order of the replies."""
    found, total = [], 0.0
    for record in records:
        match record.event:
            case PairsMeasured() | ProgramsMeasured() | JobFailed() as reply:
                total += reply.device_s
                request = records[record.because[0]].event
                if isinstance(request, MeasurementRequested):
                    found.append(Job(record.seq, request, reply, record, total))
            case _:
                pass
    return tuple(found)
