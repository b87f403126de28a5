"""The end: when the search closes, the final pairs of each kernel, and the run's figures."""

import math

from decisions import turns
from decisions.device import (
    MAX_FAILURES,
    bound_job,
    is_disturbed,
    next_job,
    request_pairs,
    reserve,
)
from decisions.due import Due
from decisions.final import median_interval
from decisions.room import remaining
from decisions.rounding import rounded
from events.projections.state import State
from events.projections.tree import OPEN, Status
from events.vocabulary import KernelFinished, RunFinished, SearchClosed


def close(state: State) -> Due | None:
    """Close the search when a control failed, a budget is spent, or nothing is left to do."""
    if state.closed:
        return None
    reason = _broken(state) or _spent(state) or _idle(state)
    return Due(SearchClosed(reason=reason), (state.seq,)) if reason else None


def _broken(state: State) -> str | None:
    for kernel, branch in state.tree.branches.items():
        for control, passed in state.ledger.of(kernel).controls.items():
            if not passed:
                return f"the harness cannot be trusted: {control} of {kernel} failed"
        baseline = state.tree.nodes.get(branch.baseline or 0)
        if baseline is not None and baseline.status is Status.REFUSED:
            return f"the baseline of {kernel} was {baseline.reason}"
    return None


def _spent(state: State) -> str | None:
    budget = state.spending.limits
    if budget.wall_s is not None and state.spending.wall_s + final_wall_s(state) >= budget.wall_s:
        return "budget: wall_s"
    if budget.device_s is not None:
        committed = state.spending.committed.device_s
        if state.ledger.running is None:
            committed += max(
                (reserve(k).device_s for k in state.ledger.kernels.values()), default=0
            )
        if committed + final_device_s(state) > budget.device_s:
            return "budget: device_s"
    return None


def final_device_s(state: State) -> float:
    """Device seconds that the final pairs of all kernels may take: what is kept is never lacking.

    A kernel without an accept is counted: its next pairs may bring the first one.
    """
    jobs = (ledger.job_s or 0.0 for ledger in state.ledger.kernels.values())
    return _n_final_jobs(state) * math.fsum(jobs)


def final_wall_s(state: State) -> float:
    """Seconds that the final pairs of all kernels are expected to take."""
    jobs = (ledger.mean_job_s for ledger in state.ledger.kernels.values())
    return _n_final_jobs(state) * math.fsum(jobs)


def _n_final_jobs(state: State) -> int:
    """Jobs per kernel: its bound, and its pairs."""
    policy = state.begun.campaign.acceptance
    return 1 + math.ceil(policy.final_pairs / policy.pairs_per_job)


def _idle(state: State) -> str | None:
    """Nothing runs, nothing waits, and nobody can be asked."""
    if state.pending or state.desk.threads or len(state.tree.branches) == 0:
        return None
    if any(branch.open for branch in state.tree.branches.values()) or state.tree.proposed:
        return None
    if next_job(state) is not None:
        return None
    if remaining(state) <= 0:
        return "max_candidates reached"
    if turns.assign(state) is not None:
        return None
    for kernel in state.tree.branches:
        task = turns.wanted(state, kernel)
        if task is not None and (refusal := turns.cannot_ask(state, task)):
            return refusal
    desks = [state.desk.of(kernel) for kernel in state.tree.branches]
    if all(desk.failures >= turns.MAX_FAILURES for desk in desks):
        why = desks[-1].last_failure
        return f"{turns.MAX_FAILURES} turns in a row of each kernel gave no candidate: {why}"
    return "nothing left to propose"


def finish(state: State) -> Due | None:
    """After closing: the final pairs and figures of each kernel, then the run's."""
    if not state.closed or state.ledger.running is not None or is_disturbed(state):
        return None
    if _is_renewing(state):
        return None
    if _broken(state):
        return Due(RunFinished(geomean=None, reason=state.closed.reason), (state.seq,))
    for kernel, branch in state.tree.branches.items():
        if branch.finished is None:
            return _final_job(state, kernel) or _final(state, kernel)
    finals = [b.finished for b in state.tree.branches.values() if b.finished]
    geomean = rounded(math.exp(math.fsum(math.log(f.speedup) for f in finals) / len(finals)))
    return Due(RunFinished(geomean=geomean, reason=state.closed.reason), (state.seq,))


def _is_renewing(state: State) -> bool:
    """Whether a version that the final pairs need is still to be built by a new toolchain."""
    known = [b.baseline for b in state.tree.branches.values() if b.incumbent is not None]
    is_open = any(state.tree.nodes[baseline or 0].status in OPEN for baseline in known)
    return is_open or bool(state.tree.renewing or state.tree.vetoes)


def _final_job(state: State, kernel: str) -> Due | None:
    branch, ledger = state.tree.branches[kernel], state.ledger.of(kernel)
    if branch.incumbent is None or branch.incumbent == branch.baseline:
        return None
    best = state.tree.incumbent(kernel)
    if ledger.bound_of != best.candidate and ledger.bound_failures < MAX_FAILURES:
        return bound_job(state, kernel)
    policy = state.begun.campaign.acceptance
    missing = policy.final_pairs - len(ledger.final)
    if missing <= 0 or ledger.final_failures >= MAX_FAILURES:
        return None
    baseline = state.tree.nodes[branch.baseline or 0]
    job = request_pairs(
        state,
        baseline,
        best,
        "final",
        start=ledger.final_coins,
        n=min(missing, policy.pairs_per_job),
        reasons="fresh pairs of the best version against the baseline",
    )
    return Due(job, (best.decided or best.proposed,))


def _final(state: State, kernel: str) -> Due:
    branch, ledger = state.tree.branches[kernel], state.ledger.of(kernel)
    ratios = [pair.incumbent_s / pair.candidate_s for pair in ledger.final]
    speedup, low, high = median_interval(ratios) if ratios else (1.0, 1.0, 1.0)
    best = branch.incumbent or branch.baseline or 0
    if ratios:
        reason = f"median of {len(ratios)} fresh pairs"
    elif best == branch.baseline:
        reason = "no candidate was accepted"
    else:
        reason = "the final pairs could not be taken, so no speed-up is claimed"
    finished = KernelFinished(
        kernel=kernel,
        best=best,
        speedup=speedup,
        low=low,
        high=high,
        time_over_bound=ledger.time_over_bound if ledger.bound_of == best else None,
        reason=reason,
    )
    return Due(finished, tuple(ledger.final_seqs) or (state.seq,))
