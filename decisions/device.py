"""The device: which job runs next, and the verdict on what it measured."""

import math
from functools import lru_cache

from decisions import acceptance
from decisions.capital import Scale, scale
from decisions.coins import coins, secret_int
from decisions.due import Due
from decisions.price import RUNS_PER_PAIR, Price, next_price, reopened
from events.campaign import Acceptance
from events.projections.ledger import MAX_AA_PAIRS, KernelLedger
from events.projections.state import State
from events.projections.tree import Node, Status
from events.vocabulary import (
    CandidateAccepted,
    CandidateRejected,
    CandidateShelved,
    MeasurementRequested,
    Pair,
    Purpose,
    ScreeningRequested,
    Sha,
    Spend,
)

MAX_FAILURES = 5
"""Device jobs of one candidate that may fail through no fault of its own."""
MAX_FAULTS = 2
"""Device jobs of one candidate that fail by its own fault; the first may be the machine's."""
SENTINEL_EVERY = 60
"""Test pairs between two sentinel jobs of three pairs: one pair in twenty."""
MIN_AA_PAIRS = 6
"""A/A pairs that every best version gets."""
MAX_LAUNCHES = 40
FIRST_JOB_S = 30.0
"""What a job reserves before any job of its kernel is known."""
KEPT_BOUNDS = 3
"""Load-only variants that later bound jobs repeat: the fastest ones of the first."""


@lru_cache(maxsize=256)
def _judge(
    pairs: tuple[Pair, ...], known: Scale, policy: Acceptance, price: float
) -> acceptance.Verdict:
    return acceptance.judge(pairs, known, policy, price)


def price(state: State) -> float:
    """Price of a measurement now, log-percent."""
    return state.tree.price or state.begun.campaign.acceptance.start_price


def kernel_scale(state: State, kernel: str) -> Scale:
    """The noise of a kernel's pairs, from its last A/A pairs whatever the best version was.

    A few pairs of one version alone would mistake a busy moment for the noise of the device.
    """
    aa = state.ledger.of(kernel).aa
    return scale(tuple(pair for pairs in aa.values() for pair in pairs)[-MAX_AA_PAIRS:])


# ---- verdicts ------------------------------------------------------------------------------


def verdict(state: State) -> Due | None:
    """Decide about an open candidate with new evidence, or whose premises are gone."""
    for branch in state.tree.branches.values():
        for candidate in branch.open:
            node = state.tree.nodes[candidate]
            if node.status is not Status.QUEUED or _is_running(state, candidate):
                continue
            due = _stale(state, node) or _failed(state, node) or _judged(state, node)
            if due:
                return due
    return None


def _is_running(state: State, candidate: int) -> bool:
    running = state.ledger.running
    return running is not None and running.candidate == candidate


def _stale(state: State, node: Node) -> Due | None:
    branch = state.tree.branches[node.kernel]
    if node.form != "step" or node.parent == branch.incumbent:
        return None
    why = f"a step on c{node.parent}, which c{branch.incumbent} has replaced"
    because = (node.proposed, state.tree.nodes[branch.incumbent or 0].decided or 0)
    return Due(_shelved(state, node, _verdict(state, node), why), because)


def _failed(state: State, node: Node) -> Due | None:
    failure = node.failed
    if failure is None:
        return None
    if failure.arm == "candidate" and node.faults >= MAX_FAULTS:
        reason = f"on the device: {failure.reason}"
        return Due(_rejected(state, node, _verdict(state, node), reason), _why(node))
    if node.failures < MAX_FAILURES:
        return None
    reason = f"{node.failures} device jobs failed: {failure.reason}"
    return Due(_shelved(state, node, _verdict(state, node), reason), _why(node))


def _verdict(state: State, node: Node) -> acceptance.Verdict | None:
    """What the pairs of a candidate against its opponent say; None if there are none."""
    if not node.pairs or node.scale is None:
        return None
    known = Scale(pair=node.scale[0], slot=node.scale[1])
    return _judge(tuple(node.pairs), known, state.begun.campaign.acceptance, price(state))


def _judged(state: State, node: Node) -> Due | None:
    verdict = _verdict(state, node)
    if verdict is None or node.opponent != state.tree.branches[node.kernel].incumbent:
        return None
    match verdict.outcome:
        case "continue":
            return None
        case "accept":
            return Due(_accepted(state, node, verdict), _why(node))
        case "reject":
            return Due(_rejected(state, node, verdict, verdict.reason), _why(node))
        case "park":
            return Due(_shelved(state, node, verdict, verdict.reason), _why(node))


def _why(node: Node) -> tuple[int, ...]:
    return tuple(node.evidence) or (node.proposed,)


def _accepted(state: State, node: Node, verdict: acceptance.Verdict) -> CandidateAccepted:
    if verdict.effect is None or verdict.low is None or verdict.high is None:
        raise ValueError(f"c{node.candidate}: an accept without an effect")
    return CandidateAccepted(
        candidate=node.candidate,
        incumbent=node.opponent or 0,
        capital=verdict.capital,
        n_pairs=verdict.n_pairs,
        effect=verdict.effect,
        low=verdict.low,
        high=verdict.high,
        next_price=_next_price(state, node),
        reason=verdict.reason,
    )


def _rejected(
    state: State, node: Node, verdict: acceptance.Verdict | None, reason: str
) -> CandidateRejected:
    return CandidateRejected(
        candidate=node.candidate,
        incumbent=state.tree.incumbent(node.kernel).candidate,
        capital=verdict.capital if verdict else 1.0,
        n_pairs=len(node.pairs),
        effect=verdict.effect if verdict else None,
        low=verdict.low if verdict else None,
        high=verdict.high if verdict else None,
        next_price=_next_price(state, node),
        reason=reason,
    )


def _shelved(
    state: State, node: Node, verdict: acceptance.Verdict | None, reason: str
) -> CandidateShelved:
    return CandidateShelved(
        candidate=node.candidate,
        premise_parent=state.tree.incumbent(node.kernel).candidate,
        premise_toolchain=node.examined.toolchain if node.examined else "",
        capital=verdict.capital if verdict else 1.0,
        n_pairs=len(node.pairs),
        effect=verdict.effect if verdict else None,
        low=verdict.low if verdict else None,
        high=verdict.high if verdict else None,
        index=verdict.index if verdict and verdict.outcome == "park" and not node.failed else None,
        price=price(state),
        next_price=_next_price(state, node),
        reason=reason,
    )


def _next_price(state: State, node: Node) -> float:
    """Price after this verdict: it follows what candidates cost against what they may cost.

    Pairs that an earlier verdict has paid for are not paid for again.
    """
    n_new = len(node.pairs) - node.n_pairs
    if n_new == 0:
        return price(state)
    return next_price(Price(price(state)), float(RUNS_PER_PAIR * n_new), allowance(state)).value


def allowance(state: State) -> float:
    """Measurements that a candidate may cost: those left over the candidates still expected."""
    campaign = state.begun.campaign
    spent = state.spending.settled.device_s
    if campaign.budget.device_s is None or not state.ledger.candidate_pairs or not spent:
        return 10.0
    n_open = sum(len(branch.open) for branch in state.tree.branches.values())
    n_left = max(1, campaign.search.max_candidates - state.tree.n_search + n_open)
    per_measurement_s = spent / (RUNS_PER_PAIR * state.ledger.candidate_pairs)
    left_s = max(0.0, campaign.budget.device_s - spent)
    return max(1.0, left_s / per_measurement_s / n_left)


# ---- the queue -----------------------------------------------------------------------------


def next_job(state: State) -> Due | None:
    """Choose the next device job, unless one is running.

    The kernel with the least device time for its weight goes first, and its jobs in the order:
    noise, canary, bound, sentinel, candidates.
    """
    if state.ledger.running is not None or state.closed or _is_disturbed(state):
        return None
    return _next_job(state)


def is_wanted(state: State) -> bool:
    """Whether a job runs, or is due as soon as the machine is quiet."""
    return state.ledger.running is not None or _next_job(state) is not None


def _is_disturbed(state: State) -> bool:
    busy = any(isinstance(r, ScreeningRequested) for r in state.pending.values())
    return state.begun.shares_host and busy


def _next_job(state: State) -> Due | None:
    ready = [k for k, b in state.tree.branches.items() if b.incumbent is not None]
    ready.sort(key=lambda k: (state.ledger.of(k).device_s / weight(state, k), k))
    for kernel in ready:
        due = _control_job(state, kernel) or _test_job(state, kernel)
        if due:
            return due
    return None


def weight(state: State, kernel: str) -> float:
    """A kernel's claim on the device: the log-gain still possible, with a floor."""
    ratio = state.ledger.of(kernel).time_over_bound
    return 1.0 if ratio is None else max(0.25, math.log(max(ratio, 1.0)))


def _control_job(state: State, kernel: str) -> Due | None:
    policy = state.begun.campaign.acceptance
    ledger = state.ledger.of(kernel)
    incumbent = state.tree.incumbent(kernel)
    n_aa = sum(len(pairs) for pairs in ledger.aa.values())
    if n_aa < policy.noise_pairs:
        return _pairs_job(state, incumbent, incumbent, "noise", "the noise of this kernel")
    slow = state.tree.nodes[state.tree.branches[kernel].nodes[2]]
    if slow.status is Status.QUEUED and slow.form == "canary_slow":
        return _pairs_job(state, incumbent, slow, "canary", "positive control")
    if ledger.bound_of != incumbent.candidate and ledger.bound_failures < MAX_FAILURES:
        return bound_job(state, kernel)
    n_own = len(ledger.aa.get(incumbent.candidate, ()))
    if ledger.since_sentinel >= SENTINEL_EVERY or n_own < MIN_AA_PAIRS:
        return _pairs_job(state, incumbent, incumbent, "sentinel", "the best against its own copy")
    return None


def _test_job(state: State, kernel: str) -> Due | None:
    branch = state.tree.branches[kernel]
    queued = [
        node
        for candidate in branch.open
        if (node := state.tree.nodes[candidate]).status is Status.QUEUED
    ]
    if queued:
        begun = [n for n in queued if n.pairs and n.opponent == branch.incumbent]
        node = (begun or queued)[0]
        why = "goes on" if begun else "next in the queue"
        return _pairs_job(state, state.tree.incumbent(kernel), node, "test", why)
    if branch.open or any(t.kernel == kernel for t in state.desk.threads.values()):
        return None
    node_ = _expired(state, kernel) or _best_shelved(state, kernel)
    if node_ is None:
        return None
    why = "nothing else is waiting, so a shelved candidate goes on"
    return _pairs_job(state, state.tree.incumbent(kernel), node_, "test", why)


def _expired(state: State, kernel: str) -> Node | None:
    """A shelved design whose premise is gone: the best version that it was compared with.

    Steps need no second chance here: their edits are proposed again on every best version.
    """
    branch = state.tree.branches[kernel]
    for candidate in branch.shelved:
        node = state.tree.nodes[candidate]
        if node.form == "design" and node.opponent != branch.incumbent and node.failures == 0:
            return node
    return None


def _best_shelved(state: State, kernel: str) -> Node | None:
    """The candidate shelved by its price that goes on when nothing else is waiting."""
    branch = state.tree.branches[kernel]
    max_pairs = state.begun.campaign.acceptance.max_pairs
    nodes = (state.tree.nodes[candidate] for candidate in branch.shelved)
    choice = reopened({
        node.candidate: node.index
        for node in nodes
        if node.index is not None
        and node.opponent == branch.incumbent
        and len(node.pairs) < max_pairs
    })  # fmt: skip
    return state.tree.nodes[choice[0]] if choice else None


def _pairs_job(
    state: State, incumbent: Node, candidate: Node, purpose: Purpose, reasons: str
) -> Due:
    policy = state.begun.campaign.acceptance
    same = candidate.opponent == incumbent.candidate
    known = candidate.scale if same else None
    if purpose in ("test", "canary") and known is None:
        fresh = kernel_scale(state, incumbent.kernel)
        known = (fresh.pair, fresh.slot)
    start = candidate.coins_used if same else 0
    if purpose in ("noise", "sentinel"):
        start = state.ledger.of(incumbent.kernel).aa_coins
    job = request_pairs(
        state, incumbent, candidate, purpose, start=start, n=policy.pairs_per_job, reasons=reasons
    )
    job = job.model_copy(update={"scale": known if purpose in ("test", "canary") else None})
    return Due(job, candidate_evidence(candidate))


def candidate_evidence(candidate: Node) -> tuple[int, ...]:
    """Records that make a candidate fit for the device."""
    return (candidate.decided,) if candidate.decided is not None else (candidate.proposed,)


def request_pairs(
    state: State,
    incumbent: Node,
    candidate: Node,
    purpose: Purpose,
    *,
    start: int,
    n: int,
    reasons: str,
) -> MeasurementRequested:
    """Word a job of `n` pairs whose coins are number `start` and following of their stream."""
    kernel = incumbent.kernel
    stream = kernel if purpose in ("test", "canary") else f"{kernel}/{purpose}"
    return MeasurementRequested(
        job=state.ledger.jobs + 1,
        kernel=kernel,
        purpose=purpose,
        incumbent=incumbent.candidate,
        candidate=candidate.candidate,
        incumbent_artifact=_artifact(incumbent),
        candidate_artifact=_artifact(candidate),
        coins=coins(
            state.begun.secret_seed, stream, candidate.candidate, incumbent.candidate, start, n
        ),
        launches=launches(state, kernel, candidate.candidate),
        inputs_seed=secret_int(state.begun.secret_seed, "device inputs"),
        reserved=reserve(state.ledger.of(kernel)),
        reasons=reasons,
    )


def bound_job(state: State, kernel: str) -> Due:
    """Word a job that interleaves the incumbent with load-only variants."""
    incumbent = state.tree.incumbent(kernel)
    ledger = state.ledger.of(kernel)
    variants = dict(state.begun.sources[kernel].bounds)
    if ledger.bounds_s:
        fastest = sorted(ledger.bounds_s, key=lambda name: (ledger.bounds_s[name], name))
        variants = {name: variants[name] for name in fastest[:KEPT_BOUNDS]}
    job = request_pairs(
        state, incumbent, incumbent, "bound", start=0, n=0, reasons="time over bound"
    )
    return Due(job.model_copy(update={"bounds": variants}), candidate_evidence(incumbent))


def launches(state: State, kernel: str, candidate: int) -> int:
    """Launches that make a run of ``candidate`` last about as long as the policy wants."""
    launch_s = state.ledger.of(kernel).run_s.get(candidate)
    if not launch_s:
        return 1
    return min(
        MAX_LAUNCHES, max(1, math.ceil(state.begun.campaign.acceptance.min_run_s / launch_s))
    )


def reserve(ledger: KernelLedger) -> Spend:
    """Device time that a job may take: one and a half times the longest one of its kernel."""
    return Spend(device_s=FIRST_JOB_S if ledger.job_s is None else 1.5 * ledger.job_s)


def _artifact(node: Node) -> Sha:
    if node.artifact is None:
        raise LookupError(f"c{node.candidate} was never built")
    return node.artifact
