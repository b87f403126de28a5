"""How much of the time in which a candidate waited for the device the device worked."""

from dataclasses import dataclass
from itertools import pairwise

from events.vocabulary import (
    AnyEvent,
    CandidateAccepted,
    CandidateId,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    JobFailed,
    MeasurementRequested,
    PairsMeasured,
    ProgramsMeasured,
    RunResumed,
    SearchClosed,
)
from scripts.reporting.history import Run


@dataclass(frozen=True)
class Waiting:
    """Two times of one run, in seconds."""

    waited_s: float
    """At least one candidate was fit for the device and had no verdict; nobody had stopped."""
    worked_s: float
    """Of it: the device worked, at whatever job."""


def waiting(run: Run) -> Waiting:
    """Read it off the log; a job that gave no reply counts as no work."""
    fit: set[CandidateId] = set()
    waited_s = worked_s = began_s = 0.0
    for before, record in pairwise(run.records):
        event = record.event
        if fit and not isinstance(event, RunResumed):
            waited_s += (record.time_ns - before.time_ns) / 1e9
        if isinstance(event, MeasurementRequested):
            began_s = waited_s
        elif isinstance(event, PairsMeasured | ProgramsMeasured | JobFailed):
            worked_s += min(event.device_s, waited_s - began_s)
        _queue(fit, event, run)
    return Waiting(waited_s, worked_s)


def _queue(fit: set[CandidateId], event: AnyEvent, run: Run) -> None:
    """Keep up which of the search's candidates the device could measure."""
    match event:
        case CandidateScreened(passed=True, candidate=candidate):
            if run.state.tree.nodes[candidate].is_search:
                fit.add(candidate)
        case MeasurementRequested(purpose="test", candidate=candidate):
            fit.add(candidate)
        case CandidateAccepted() | CandidateRejected() | CandidateShelved():
            fit.discard(event.candidate)
        case SearchClosed():
            fit.clear()
        case _:
            pass
