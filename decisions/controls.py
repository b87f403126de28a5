"""Controls of the machinery itself: lost work, canaries, the sentinel."""

from decisions import acceptance
from decisions.capital import Scale, scale
from decisions.device import is_outdated
from decisions.due import Due
from decisions.screening import spared_by
from decisions.vetoes import concerns
from events.projections.state import State, work_id
from events.projections.tree import Node, Status
from events.vocabulary import (
    CandidateId,
    HarnessChecked,
    MeasurementRequested,
    Request,
    ScreeningRequested,
    TurnAssigned,
    WorkAbandoned,
)

MAX_LOSSES = 2
MAX_CANARY_PAIRS = 60
"""Pairs by which a canary that is several times slower must be found slower."""
MAX_CONTROL_FAILURES = 20
"""Control jobs that may fail, on a machine too busy for readings, before the run gives up."""


def reissue(state: State) -> Due | None:
    """Issue lost work again, and give it up when its actor was lost with it too often.

    Work on a candidate that is to be withdrawn is given up too, and a job that runs what another
    toolchain has built. A device job that is issued again is the same, with the same coins, because
    nobody has seen a reading of the lost one; one that is given up counts as failed.
    """
    for seq, request in state.lost.items():
        n_losses = state.losses.get(work_id(request), 0)
        vetoed = next((c for c in state.tree.vetoes if concerns(request, c)), None)
        outdated = isinstance(request, MeasurementRequested) and is_outdated(state, request)
        if vetoed is None and not outdated and n_losses < MAX_LOSSES:
            return Due(_again(state, request), (seq,))
        abandoned = WorkAbandoned(
            work=work_id(request),
            candidate=request.candidate if isinstance(request, ScreeningRequested) else None,
            turn=request.turn if isinstance(request, TurnAssigned) else None,
            job=request.job if isinstance(request, MeasurementRequested) else None,
            reason=_why_abandoned(vetoed, n_losses, outdated=outdated),
        )
        return Due(abandoned, (seq,))
    return None


def _again(state: State, request: Request) -> Request:
    """The request as it was; but a source is held against the rules of now, which may spare it."""
    if not isinstance(request, ScreeningRequested):
        return request
    by = spared_by(state, state.tree.nodes[request.candidate])
    return request.model_copy(update={"spared_by": by})


def _why_abandoned(vetoed: CandidateId | None, n_losses: int, *, outdated: bool) -> str:
    if vetoed is not None:
        return f"c{vetoed} is vetoed"
    return "the toolchain has changed" if outdated else f"lost with its actor {n_losses} times"


def check(state: State) -> Due | None:
    """Say what a canary or the last A/A pairs show of the harness."""
    for kernel, branch in state.tree.branches.items():
        for candidate in branch.nodes[:3]:
            node = state.tree.nodes[candidate]
            if node.form == "canary_wrong" and node.status in (Status.REFUSED, Status.QUEUED):
                return _wrong(node)
            if node.form == "canary_slow" and node.status in (Status.REFUSED, Status.QUEUED):
                due = _slow(state, node)
                if due:
                    return due
        due = _sentinel(state, kernel)
        if due:
            return due
    return None


def _wrong(node: Node) -> Due:
    fixtures = node.examined.fixtures if node.examined else ()
    passed = node.status is Status.REFUSED and any((f.margin or 0.0) > 1.0 for f in fixtures)
    why = node.reason if node.status is Status.REFUSED else "it passed"
    said = "was refused for its outputs" if passed else "was not refused for its outputs"
    reason = f"the known-wrong canary {said}: {why}"
    checked = HarnessChecked(
        kernel=node.kernel, control="canary_wrong", passed=passed, reason=reason
    )
    return Due(checked, (node.decided or 0,))


def _slow(state: State, node: Node) -> Due | None:
    if node.status is Status.REFUSED:
        passed, reason = False, node.reason
    elif node.failures >= MAX_CONTROL_FAILURES and node.failed is not None:
        passed, reason = False, node.failed.reason
    elif node.pairs and node.scale:
        faster, slower = acceptance.sentinel(node.pairs, _scale(node))
        if max(faster, slower) < acceptance.SENTINEL_LIMIT and len(node.pairs) < MAX_CANARY_PAIRS:
            return None
        passed = slower >= acceptance.SENTINEL_LIMIT
        reason = f"capital {slower:.0f} for slower after {len(node.pairs)} pairs"
    else:
        return None
    checked = HarnessChecked(
        kernel=node.kernel,
        control="canary_slow",
        passed=passed,
        reason=f"the known-slow canary: {reason}",
    )
    return Due(checked, tuple(node.evidence) or (node.decided or 0,))


def _scale(node: Node) -> Scale:
    pair, slot = node.scale or (1.0, 0.0)
    return Scale(pair=pair, slot=slot)


def _sentinel(state: State, kernel: str) -> Due | None:
    """Test the last incumbent's A/A pairs between new ones and the next job."""
    ledger = state.ledger.of(kernel)
    if not ledger.controls.get("sentinel", True):
        return None
    if ledger.noise_failures >= MAX_CONTROL_FAILURES:
        reason = f"{ledger.noise_failures} A/A jobs in a row failed"
        return Due(_suspect(kernel, reason), (state.seq,))
    if not ledger.aa_seqs or ledger.aa_seqs[-1] < state.ledger.running_seq:
        return None
    pairs = ledger.own_aa
    capital = max(acceptance.sentinel(pairs, scale(pairs)))
    if capital < acceptance.SENTINEL_LIMIT:
        return None
    reason = f"c{ledger.aa_of} differs from its own copy: capital {capital:.0f}"
    return Due(_suspect(kernel, reason), tuple(ledger.aa_seqs)[-4:])


def _suspect(kernel: str, reason: str) -> HarnessChecked:
    return HarnessChecked(kernel=kernel, control="sentinel", passed=False, reason=reason)
