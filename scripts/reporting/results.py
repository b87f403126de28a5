"""The result of a run: what the fresh final pairs say, and what the accepts claim."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Literal

from events.projections.ledger import KernelLedger
from events.projections.state import State
from events.projections.tree import Branch, Node, Status
from events.vocabulary import CandidateId
from scripts.reporting.history import Run

Standing = Literal["finished", "failed", "interrupted", "open"]


@dataclass(frozen=True)
class Final:
    """Fresh pairs of the best version against the baseline, taken when the search had closed."""

    speedup: float
    """Median over the pairs."""
    low: float
    high: float
    """Distribution-free 95 % interval."""
    n_pairs: int
    seqs: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """One kernel's figures."""

    kernel: str
    best: Node | None
    """None until the baseline has passed screening."""
    claim: float
    """Product of the effects at the accepts."""
    accepts: tuple[CandidateId, ...]
    n_accept_pairs: int
    final: Final | None
    baseline_s: float | None
    best_s: float | None
    bound_s: float | None
    bound_name: str
    time_over_bound: float | None
    bound_seq: int | None
    note: str

    @property
    def is_baseline(self) -> bool:
        """Whether nothing was accepted."""
        return not self.accepts

    @property
    def disagrees(self) -> bool:
        """Whether the final pairs' interval leaves the claim out."""
        final = self.final
        return final is not None and not final.low <= self.claim <= final.high


@dataclass(frozen=True)
class Headline:
    """The run's one figure and how far it can be believed."""

    standing: Standing
    geomean: float | None
    is_fresh: bool
    """From final pairs; else the accepts' claim."""
    reason: str


def results(run: Run) -> tuple[Result, ...]:
    """Return the figures of each kernel, in the campaign's order."""
    return tuple(_result(run.state, kernel) for kernel in run.kernels)


def headline(run: Run, found: tuple[Result, ...]) -> Headline:
    """Choose the figure to show first."""
    state = run.state
    claims = [result.claim for result in found]
    claim = math.exp(math.fsum(math.log(c) for c in claims) / len(claims))
    if state.finished is not None:
        geomean, reason = state.finished.geomean, state.finished.reason
        return Headline("failed" if geomean is None else "finished", geomean, True, reason)
    if state.interrupted:
        last = run.records[-1].event
        reason = last.reason if last.kind == "run_interrupted" else "by the operator"
        return Headline("interrupted", claim, False, reason)
    reason = state.closed.reason if state.closed else "the log has no end yet"
    return Headline("open", claim, False, reason)


def _result(state: State, kernel: str) -> Result:
    branch = state.tree.branches.get(kernel, Branch())
    ledger = state.ledger.kernels.get(kernel, KernelLedger())
    best = state.tree.nodes.get(branch.incumbent or 0)
    bound_name = min(ledger.bounds_s, key=ledger.bounds_s.__getitem__, default="")
    is_current = best is not None and ledger.bound_of == best.candidate
    baseline_s, best_s = _times(state, branch, ledger)
    return Result(
        kernel=kernel,
        best=best,
        claim=state.tree.speedup(best.candidate) if best else 1.0,
        accepts=tuple(branch.accepts),
        n_accept_pairs=sum(state.tree.nodes[c].n_pairs for c in branch.accepts),
        final=_final(branch, ledger),
        baseline_s=baseline_s,
        best_s=best_s,
        bound_s=ledger.bounds_s.get(bound_name),
        bound_name=bound_name,
        time_over_bound=ledger.time_over_bound if is_current else None,
        bound_seq=ledger.bound_seq if is_current else None,
        note=_note(state, branch),
    )


def _final(branch: Branch, ledger: KernelLedger) -> Final | None:
    done = branch.finished
    if done is None or not ledger.final:
        return None
    seqs = tuple(ledger.final_seqs)
    return Final(done.speedup, done.low, done.high, len(ledger.final), seqs)


def _times(state: State, branch: Branch, ledger: KernelLedger) -> tuple[float | None, float | None]:
    """Seconds per launch of baseline and best version, from the same pairs where there are any."""
    if ledger.final:
        pairs = ledger.final
        return median(p.incumbent_s for p in pairs), median(p.candidate_s for p in pairs)
    versions = (state.tree.nodes.get(c or 0) for c in (branch.baseline, branch.incumbent))
    baseline_s, best_s = (node.run_s if node else None for node in versions)
    return baseline_s, best_s


def _note(state: State, branch: Branch) -> str:
    baseline = state.tree.nodes.get(branch.baseline or 0)
    if baseline is None:
        return "not begun"
    if baseline.status is Status.REFUSED:
        return f"the baseline was {baseline.reason}"
    if branch.finished is not None:
        return branch.finished.reason
    return "no final pairs yet" if branch.accepts else "no candidate accepted so far"
