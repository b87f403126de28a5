"""Everything that the log holds about one candidate, as text."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from decisions.capital import Scale, capital, effect_of
from events.blobs import Blobs
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    CandidateAccepted,
    CandidateExamined,
    CandidateId,
    CandidateProposed,
    CandidateRejected,
    CandidateScreened,
    CandidateShelved,
    MeasurementRequested,
    Pair,
    PairsMeasured,
    Record,
    RoleReplied,
    Sha,
)

RULE = "-" * 88


@dataclass
class Trail:
    """The records about one candidate, in order."""

    proposed: Record | None = None
    examined: Record | None = None
    screened: Record | None = None
    verdicts: list[Record] = field(default_factory=list)
    jobs: list[tuple[MeasurementRequested, Record]] = field(default_factory=list)
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
            case CandidateAccepted() | CandidateRejected() | CandidateShelved() as event:
                found[event.candidate].verdicts.append(record)
            case MeasurementRequested() as event:
                requests[record.seq] = event
            case PairsMeasured():
                request = requests[record.because[0]]
                if request.purpose in ("test", "canary"):
                    found[request.candidate].jobs.append((request, record))
            case RoleReplied() as event:
                replies[record.seq] = event
            case _:
                pass
    return found


def dossier(candidate: CandidateId, trail: Trail, state: State, blobs: Blobs) -> Iterator[str]:
    """Write the evidence about a candidate, line by line."""
    node = state.tree.nodes[candidate]
    yield RULE
    yield f"c{candidate}  {node.kernel}  {node.form}  {node.status}"
    yield f"hypothesis  {node.hypothesis}"
    yield f"author      {node.author}"
    yield from _knowledge(trail, state)
    yield from _screening(trail, state)
    yield from _pairs(trail, state)
    for verdict in trail.verdicts:
        yield f"verdict     record {verdict.seq}, from records {_numbers(verdict.because)}:"
        yield f"            {_verdict(verdict)}"
    yield from _talk(trail, blobs)
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
        number = cite.removeprefix("f")
        fact = state.knowledge.facts.get(int(number)) if number.isdigit() else None
        yield f"cites       {cite}: {fact.claim if fact else 'no such fact'}"


def _screening(trail: Trail, state: State) -> Iterator[str]:
    event = trail.examined.event if trail.examined else None
    if isinstance(event, CandidateExamined) and trail.examined:
        yield f"toolchain   {event.toolchain[:16]}  (record {trail.examined.seq})"
        yield f"fingerprint {', '.join(f'{k} {v}' for k, v in state.toolchain.items())[:200]}"
        if event.artifact:
            yield f"artifact    {event.artifact}"
        for stage in event.stages:
            outcome = "passed" if stage.passed else f"FAILED: {stage.detail}"
            yield f"  {stage.stage:<12} {outcome}"
        for fixture in event.fixtures:
            margin = "-" if fixture.margin is None else f"{fixture.margin:.3f}"
            yield f"  margin {margin:<7} {fixture.fixture} {fixture.detail}".rstrip()
    if trail.screened and isinstance(trail.screened.event, CandidateScreened):
        yield f"screened    record {trail.screened.seq}: {trail.screened.event.reason}"


def _pairs(trail: Trail, state: State) -> Iterator[str]:
    """Tables of pairs, one per opponent: the capital starts again with each."""
    opponents = dict.fromkeys(request.incumbent for request, _ in trail.jobs)
    alpha = state.begun.campaign.acceptance.alpha
    for opponent in opponents:
        jobs = [(r, record) for r, record in trail.jobs if r.incumbent == opponent]
        known = Scale(*(jobs[0][0].scale or (1.0, 0.0)))
        yield f"pairs       against c{opponent}; scale {known.pair:.3f}, slot {known.slot:+.3f}"
        yield "  record  first      incumbent us  candidate us  effect %   capital"
        rows = [(record.seq, pair) for _, record in jobs for pair in _measured(record)]
        effects = [effect_of(pair, known.slot) for _, pair in rows]
        held = capital(effects, known.pair, alpha)
        for (seq, pair), effect, money in zip(rows, effects, held, strict=True):
            first = "candidate" if pair.candidate_first else "incumbent"
            yield (
                f"  {seq:<7} {first:<10} {pair.incumbent_s * 1e6:>12.1f} "
                f"{pair.candidate_s * 1e6:>13.1f} {effect:>+9.2f} {money:>9.3g}"
            )
        for _, record in jobs:
            if isinstance(record.event, PairsMeasured):
                yield (
                    f"  on the device (record {record.seq}): margins incumbent "
                    f"{record.event.incumbent_margin:.3f}, candidate "
                    f"{record.event.candidate_margin:.3f}; lease {record.event.token}"
                )


def _measured(record: Record) -> tuple[Pair, ...]:
    return record.event.pairs if isinstance(record.event, PairsMeasured) else ()


def _verdict(record: Record) -> str:
    event = record.event
    if not isinstance(event, CandidateAccepted | CandidateRejected | CandidateShelved):
        raise TypeError(f"{event.kind} is no verdict")
    interval = "" if event.low is None else f" [{event.low:+.2f}, {event.high:+.2f}] log-percent"
    return f"{event.kind.removeprefix('candidate_')}{interval}: {event.reason}"


def _talk(trail: Trail, blobs: Blobs) -> Iterator[str]:
    for seq, reply in trail.replies:
        yield f"prompt      record {seq}, {reply.provider}, template {reply.template[:16]}"
        yield from _indented(blobs.text(reply.prompt))
        yield f"reply       record {seq}"
        yield from _indented(blobs.text(reply.reply))


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"    | {_printable(line)}"


def _printable(line: str) -> str:
    """Agent-written text must not move the reader's cursor."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)


def _diff(node: Node, state: State, blobs: Blobs) -> Iterator[str]:
    if node.parent is None:
        return
    before, after = _lines(state.tree.nodes[node.parent].source, blobs), _lines(node.source, blobs)
    yield f"diff        c{node.parent} -> c{node.candidate}"
    names = (f"c{node.parent}", f"c{node.candidate}")
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        yield f"    {_printable(line)}"


def _lines(sha: Sha, blobs: Blobs) -> list[str]:
    return blobs.text(sha).splitlines()
