"""The Design Tree of each kernel as rows, each with all that is known of one candidate."""

from collections.abc import Iterator
from dataclasses import dataclass

from events.blobs import Blobs
from events.projections.tree import OPEN, Node, Status
from events.vocabulary import CandidateExamined, CandidateId, CandidateProposed, CandidateScreened
from scripts.reporting.diffs import DiffLine, diff
from scripts.reporting.history import Run
from scripts.reporting.trials import Trial, trial
from scripts.statics import Static, static


@dataclass(frozen=True)
class Row:
    """One candidate and its place."""

    node: Node
    depth: int
    is_best: bool
    proposal: CandidateProposed
    examined: CandidateExamined | None
    fate: str
    """One word, or the stage that refused it."""
    screened: int | None
    """Record of screening's verdict."""
    trial: Trial | None
    static: Static | None
    """What the cost model says, where the target has one."""


@dataclass(frozen=True)
class Accept:
    """One accepted candidate with the evidence for it."""

    row: Row
    trial: Trial
    speedup_before: float
    speedup_after: float
    changes: tuple[DiffLine, ...]
    profile: str
    """Where its static cycles go; "" without a cost model."""
    facts: tuple[int, ...]
    """Knowledge cited."""


def rows(run: Run) -> dict[str, tuple[Row, ...]]:
    """Return each kernel's candidates, every one right after its parent's earlier offspring."""
    proposals = {
        r.event.candidate: r.event for r in run.records if isinstance(r.event, CandidateProposed)
    }
    examined = {
        r.event.candidate: r.event for r in run.records if isinstance(r.event, CandidateExamined)
    }
    screened = {
        r.event.candidate: (r.seq, r.event)
        for r in run.records
        if isinstance(r.event, CandidateScreened)
    }
    found: dict[str, tuple[Row, ...]] = dict.fromkeys(run.kernels, ())
    for kernel, branch in run.state.tree.branches.items():
        nodes = [run.state.tree.nodes[c] for c in branch.nodes]
        found[kernel] = tuple(
            Row(
                node,
                depth,
                node.candidate == branch.incumbent,
                proposals[node.candidate],
                examined.get(node.candidate),
                fate(node, screened.get(node.candidate)),
                screened.get(node.candidate, (None, None))[0],
                trial(run, node),
                static(run.state.tree, node),
            )
            for node, depth in _nested(nodes)
        )
    return found


def accepts(run: Run, blobs: Blobs, found: dict[str, tuple[Row, ...]]) -> tuple[Accept, ...]:
    """Return the accepts in the order of the log.

    Raises:
        LogError: a source is missing or damaged.
    """
    taken = [
        _accept(run, blobs, row, row.trial)
        for branch in found.values()
        for row in branch
        if row.node.status is Status.ACCEPTED and row.trial is not None
    ]
    return tuple(sorted(taken, key=lambda accept: accept.row.node.decided or 0))


def fate(node: Node, screened: tuple[int, CandidateScreened] | None) -> str:
    """What has become of a candidate, in a word or two."""
    if node.form == "baseline" and node.status is Status.CONTROL:
        return "baseline"
    if node.status is Status.CONTROL:
        return "canary"
    if node.status in OPEN:
        return "open"
    if node.status is not Status.REFUSED:
        return str(node.status)
    stage = screened[1].stage if screened else None
    return f"refused: {stage}" if stage else "lost"


def _nested(nodes: list[Node]) -> Iterator[tuple[Node, int]]:
    """Walk the tree depth first, without recursion: chains of accepts grow long."""
    known = {node.candidate for node in nodes}
    children: dict[CandidateId | None, list[Node]] = {}
    for node in nodes:
        parent = node.parent if node.parent in known else None
        children.setdefault(parent, []).append(node)
    waiting = [(node, 0) for node in reversed(children.get(None, []))]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(node.candidate, []))]


def _accept(run: Run, blobs: Blobs, row: Row, evidence: Trial) -> Accept:
    tree, node = run.state.tree, row.node
    parent = tree.nodes[node.parent or evidence.opponent]
    facts = [cite[1:] for cite in row.proposal.cites if cite.startswith("f")]
    return Accept(
        row=row,
        trial=evidence,
        speedup_before=tree.speedup(evidence.opponent),
        speedup_after=tree.speedup(node.candidate),
        profile=blobs.text(node.cost.profile) if node.cost else "",
        changes=diff(blobs.text(parent.source), blobs.text(node.source)),
        facts=tuple(int(f) for f in facts if f.isdecimal() and int(f) in run.state.knowledge.facts),
    )
