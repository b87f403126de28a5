"""Everything that the log holds about one candidate, as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from events.blobs import Blobs
from events.projections.state import State
from events.projections.tree import Node
from events.toolchain import toolchain_digest
from events.vocabulary import (
    CandidateAccepted,
    CandidateExamined,
    CandidateId,
    CandidateProposed,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    CandidateWithdrawn,
    MeasurementRequested,
    PairsMeasured,
    Record,
    RoleReplied,
)
from scripts.plain import visible
from scripts.readings import stand_in
from scripts.reporting.diffs import diff
from scripts.reporting.trials import readings
from scripts.statics import static

RULE = "-" * 88


class Measurement(NamedTuple):
    """A job that gave pairs of a candidate."""

    seq: int
    """Record of the reply."""
    request: MeasurementRequested
    reply: PairsMeasured


@dataclass
class Trail:
    """The records about one candidate, in order."""

    proposed: Record | None = None
    examined: Record | None = None
    screened: Record | None = None
    verdicts: list[Record] = field(default_factory=list)
    jobs: list[Measurement] = field(default_factory=list)
    replies: list[tuple[int, RoleReplied]] = field(default_factory=list)


def trails(records: Sequence[Record]) -> dict[CandidateId, Trail]:
    """Sort the records of a run by candidate."""
    found: dict[CandidateId, Trail] = {}
    requests: dict[int, MeasurementRequested] = {}
    replies: dict[int, RoleReplied] = {}
    for record in records:
        match record.event:
            case CandidateProposed(candidate=candidate):
                trail = found.setdefault(candidate, Trail())
                trail.proposed = record
                trail.replies = [(s, replies[s]) for s in record.because if s in replies]
            case CandidateExamined(candidate=candidate):
                found[candidate].examined = record
            case CandidateScreened(candidate=candidate):
                found[candidate].screened = record
            case (
                CandidateAccepted()
                | CandidateRejected()
                | CandidateShelved()
                | CandidateWithdrawn() as event
            ):
                found[event.candidate].verdicts.append(record)
            case MeasurementRequested() as event:
                requests[record.seq] = event
            case PairsMeasured() as event:
                request = requests[record.because[0]]
                if request.purpose in ("test", "canary"):
                    job = Measurement(record.seq, request, event)
                    found[request.candidate].jobs.append(job)
            case RoleReplied() as event:
                replies[record.seq] = event
            case _:
                pass
    return found


def dossier(
    candidate: CandidateId, trail: Trail, state: State, blobs: Blobs, *, whole: bool
) -> Iterator[str]:
    """Write the evidence about a candidate, line by line; what agents wrote cannot begin one.

    Args:
        candidate: its number.
        trail: the records about it.
        state: of the whole run.
        blobs: of the run.
        whole: whether prompts are written out; they are long, and named in any case.
    """
    for line in _told(candidate, trail, state, blobs, whole=whole):
        yield visible(line).replace("\n", "\n            ")


def _told(
    candidate: CandidateId, trail: Trail, state: State, blobs: Blobs, *, whole: bool
) -> Iterator[str]:
    node = state.tree.nodes[candidate]
    yield RULE
    yield f"c{candidate}  {node.kernel}  {node.form}  {node.status}"
    yield f"hypothesis  {node.hypothesis}"
    yield f"author      {node.author}"
    yield from _knowledge(trail, state)
    yield from _screening(trail, state)
    yield from _static(node, state, blobs, whole=whole)
    yield from _pairs(trail, state)
    for verdict in trail.verdicts:
        yield f"verdict     record {verdict.seq}, from records {_numbers(verdict.because)}:"
        yield f"            {_verdict(verdict)}"
    yield from _talk(candidate, trail, blobs, whole=whole)
    yield from _diff(node, state, blobs)


def _numbers(seqs: Sequence[int]) -> str:
    return ", ".join(map(str, seqs))


def _knowledge(trail: Trail, state: State) -> Iterator[str]:
    event = trail.proposed.event if trail.proposed else None
    if not isinstance(event, CandidateProposed):
        return
    if event.parent is not None:
        yield f"parent      c{event.parent}"
    if event.rebased_from is not None:
        yield f"rebased     from c{event.rebased_from}"
    for cite in event.cites:
        if cite.startswith("h"):
            yield f"cites       {cite}: a hint of the operator; `kernelwright tree RUN` has it"
            continue
        number = cite.removeprefix("f")
        fact = state.knowledge.facts.get(int(number)) if number.isdigit() else None
        yield f"cites       {cite}: {fact.claim if fact else 'no such fact'}"


def _screening(trail: Trail, state: State) -> Iterator[str]:
    event = trail.examined.event if trail.examined else None
    if isinstance(event, CandidateExamined) and trail.examined:
        yield f"toolchain   {event.toolchain[:16]}  (record {trail.examined.seq})"
        if event.toolchain == toolchain_digest(state.toolchain):
            yield f"fingerprint {', '.join(f'{k} {v}' for k, v in state.toolchain.items())[:200]}"
        if event.artifact:
            yield f"artifact    {event.artifact}"
        for stage in event.stages:
            outcome = "passed" if stage.passed else f"FAILED: {stage.detail}"
            yield f"  {stage.stage:<12} {outcome}"
        for fixture in event.fixtures:
            margin = "-" if fixture.margin is None else f"{fixture.margin:.3f}"
            yield f"  margin {margin:<7} {fixture.fixture} {fixture.detail}".rstrip()
    if device := stand_in(state.toolchain):
        yield f"readings    {device}"
    if trail.screened and isinstance(trail.screened.event, CandidateScreened):
        yield f"screened    record {trail.screened.seq}: {trail.screened.event.reason}"


def _static(node: Node, state: State, blobs: Blobs, *, whole: bool) -> Iterator[str]:
    cost = static(state.tree, node)
    if cost is None or node.cost is None:
        return
    yield f"static      {cost}"
    if whole:
        yield from _indented(blobs.text(node.cost.profile).rstrip())


def _pairs(trail: Trail, state: State) -> Iterator[str]:
    """Tables of pairs, one per opponent: the capital starts again with each."""
    alpha = state.begun.campaign.acceptance.alpha
    for opponent in dict.fromkeys(job.request.incumbent for job in trail.jobs):
        jobs = [job for job in trail.jobs if job.request.incumbent == opponent]
        scale = jobs[0].request.scale or (1.0, 0.0)
        yield f"pairs       against c{opponent}; scale {scale[0]:.3f}, slot {scale[1]:+.3f}"
        yield "  record  first      incumbent us  candidate us  effect %   capital"
        pairs = [(job.seq, pair) for job in jobs for pair in job.reply.pairs]
        for r in readings(pairs, scale, alpha):
            first = "candidate" if r.candidate_first else "incumbent"
            yield (
                f"  {r.seq:<7} {first:<10} {r.incumbent_s * 1e6:>12.1f} "
                f"{r.candidate_s * 1e6:>13.1f} {r.effect:>+9.2f} {r.capital:>9.3g}"
            )
        for job in jobs:
            yield (
                f"  on the device (record {job.seq}): margins incumbent "
                f"{job.reply.incumbent_margin:.3f}, candidate "
                f"{job.reply.candidate_margin:.3f}; lease {job.reply.token}"
            )


def _verdict(record: Record) -> str:
    event = record.event
    if isinstance(event, CandidateWithdrawn):
        again = "" if event.incumbent is None else f"; c{event.incumbent} is the best again"
        return f"withdrawn: {event.reason}{again}"
    if not isinstance(event, CandidateAccepted | CandidateRejected | CandidateShelved):
        raise TypeError(f"{event.kind} is no verdict")
    interval = "" if event.low is None else f" [{event.low:+.2f}, {event.high:+.2f}] log-percent"
    return f"{event.kind.removeprefix('candidate_')}{interval}: {event.reason}"


def _talk(candidate: CandidateId, trail: Trail, blobs: Blobs, *, whole: bool) -> Iterator[str]:
    for seq, reply in trail.replies:
        yield f"prompt      record {seq}, {reply.provider}, template {reply.template[:16]}"
        prompt = blobs.text(reply.prompt)
        if whole:
            yield from _indented(prompt)
        else:
            n_lines = len(prompt.splitlines())
            yield f"    | {n_lines} lines, written out by `kernelwright audit RUN c{candidate}`"
        yield f"reply       record {seq}"
        yield from _indented(blobs.text(reply.reply))


def _indented(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield f"    | {line}"


def _diff(node: Node, state: State, blobs: Blobs) -> Iterator[str]:
    if node.parent is None:
        return
    parent = state.tree.nodes[node.parent]
    yield f"diff        c{node.parent} -> c{node.candidate}"
    for line in diff(blobs.text(parent.source), blobs.text(node.source)):
        yield f"    {line.text}"
