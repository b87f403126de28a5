"""The device: which job runs next, and what it says."""

import math

from decisions.capital import Scale, scale
from decisions.coins import coins, secret_int
from decisions.due import Due
from decisions.price import reopened
from decisions.static_cost import first
from events.projections.ledger import KernelLedger
from events.projections.state import State
from events.projections.tree import Node, Status
from events.vocabulary import (
    FactCheckRequested,
    LearningRequested,
    MeasurementRequested,
    Purpose,
    ScreeningRequested,
    Sha,
    Spend,
)

MAX_FAILURES = 5
"""Device jobs about one subject that may fail before it is left alone."""
SENTINEL_EVERY = 60
"""Test pairs between two sentinel jobs of three pairs: one pair in twenty."""
MIN_AA_PAIRS = 6
"""A/A pairs that every best version gets."""
MAX_LAUNCHES = 40
FIRST_JOB_S = 30.0
"""What a job reserves before any job of its kernel is known."""
MAX_PROBE_FAILURES = 2
"""Jobs of a microbenchmark that may fail before it is left alone."""
KEPT_BOUNDS = 3
"""Load-only variants that later bound jobs repeat: the fastest ones of the first."""


def kernel_scale(state: State, kernel: str) -> Scale:
    """The noise of a kernel's pairs, from its last A/A pairs whatever the best version was.

    A few pairs of one version alone would mistake a busy moment for the noise of the device.
    """
    return scale(tuple(state.ledger.of(kernel).aa))


def next_job(state: State) -> Due | None:
    """Choose the next device job, unless one is running.

    The kernel with the least device time for its weight goes first, and its jobs in the order:
    noise, canary, bound, sentinel, candidates.
    """
    if state.ledger.running is not None or state.closed or is_disturbed(state):
        return None
    return _next_job(state)


def is_wanted(state: State) -> bool:
    """Whether a job runs, or is due as soon as the machine is quiet."""
    return state.ledger.running is not None or _next_job(state) is not None


def must_be_quiet(state: State) -> bool:
    """Whether work elsewhere would disturb the machine that measures, or is about to."""
    return state.begun.shares_host and is_wanted(state)


def is_disturbed(state: State) -> bool:
    """Whether screening or the keeper's builds are at work on the machine that measures."""
    builds = (ScreeningRequested, LearningRequested, FactCheckRequested)
    busy = any(isinstance(r, builds) for r in state.pending.values())
    return state.begun.shares_host and busy


def _next_job(state: State) -> Due | None:
    ready = [k for k in state.tree.branches if is_ready(state, k)]
    ready.sort(key=lambda k: (state.ledger.of(k).device_s / weight(state, k), k))
    for kernel in ready:
        due = _control_job(state, kernel) or _probe_job(state, kernel) or _test_job(state, kernel)
        if due:
            return due
    return None


def is_ready(state: State, kernel: str) -> bool:
    """Whether the best version of a kernel was built and checked under the toolchain of now."""
    best = state.tree.branches[kernel].incumbent
    return best is not None and _may_run(state.tree.nodes[best])


def _may_run(node: Node) -> bool:
    return node.artifact is not None and node.examined is None


def is_outdated(state: State, job: MeasurementRequested) -> bool:
    """Whether a job runs what another toolchain than that of now has built."""
    arms = (job.incumbent, job.incumbent_artifact), (job.candidate, job.candidate_artifact)
    return any(state.tree.nodes[candidate].artifact != artifact for candidate, artifact in arms)


def weight(state: State, kernel: str) -> float:
    """A kernel's claim on the device: the log-gain still possible, with a floor."""
    ratio = state.ledger.of(kernel).time_over_bound
    return 1.0 if ratio is None else max(0.25, math.log(max(ratio, 1.0)))


def _control_job(state: State, kernel: str) -> Due | None:
    policy = state.begun.campaign.acceptance
    ledger = state.ledger.of(kernel)
    incumbent = state.tree.incumbent(kernel)
    if ledger.n_aa < policy.noise_pairs:
        return _pairs_job(state, incumbent, incumbent, "noise", "the noise of this kernel")
    slow = state.tree.nodes[state.tree.branches[kernel].nodes[2]]
    if slow.status is Status.QUEUED and slow.form == "canary_slow":
        return _pairs_job(state, incumbent, slow, "canary", "positive control")
    if ledger.bound_of != incumbent.candidate and ledger.bound_failures < MAX_FAILURES:
        return bound_job(state, kernel)
    n_own = ledger.n_own_aa if ledger.aa_of == incumbent.candidate else 0
    if ledger.since_sentinel >= SENTINEL_EVERY or n_own < MIN_AA_PAIRS:
        return _pairs_job(state, incumbent, incumbent, "sentinel", "the best against its own copy")
    return None


def _probe_job(state: State, kernel: str) -> Due | None:
    """The next microbenchmark on a kernel's buffers, within its share of the device time."""
    ledger = state.ledger.of(kernel)
    share = state.begun.campaign.knowledge.probe_share
    reserved = _reserve(ledger.probe_job_s or ledger.job_s)
    used_s, probe_s = state.spending.settled.device_s, state.ledger.probe_s
    if probe_s + reserved.device_s > share * used_s:
        return None
    for name, family in state.begun.microbenchmarks.items():
        if family.kernel == kernel and is_wanted_probe(state, name):
            incumbent = state.tree.incumbent(kernel)
            job = request_pairs(
                state, incumbent, incumbent, "probe", start=0, n=0,
                reasons=f"probes took {probe_s:.0f} of {used_s:.0f} device s",
            )  # fmt: skip
            programs = {point: source.source for point, source in family.points.items()}
            update = {"programs": programs, "microbenchmark": name, "launches": 1}
            job = job.model_copy(update={**update, "reserved": reserved})
            return Due(job, candidate_evidence(incumbent))
    return None


def is_wanted_probe(state: State, name: str) -> bool:
    """Whether a microbenchmark has no times yet, and did not fail too often."""
    probed = state.ledger.probes.get(name)
    return probed is None or (probed.seq < 0 and probed.failures < MAX_PROBE_FAILURES)


def _test_job(state: State, kernel: str) -> Due | None:
    branch = state.tree.branches[kernel]
    queued = [
        node
        for candidate in branch.open
        if (node := state.tree.nodes[candidate]).status is Status.QUEUED
    ]
    if queued:
        begun = [n for n in queued if n.pairs and n.opponent == branch.incumbent]
        node, why = (begun[0], "goes on") if begun else first(state, kernel, queued)
        return _pairs_job(state, state.tree.incumbent(kernel), node, "test", why)
    if branch.open or any(t.kernel == kernel for t in state.desk.threads.values()):
        return None
    node_ = _expired(state, kernel) or _best_shelved(state, kernel)
    if node_ is None:
        return None
    why = "nothing else is waiting, so a shelved candidate goes on"
    return _pairs_job(state, state.tree.incumbent(kernel), node_, "test", why)


def _expired(state: State, kernel: str) -> Node | None:
    """A shelved design whose premise is gone: the best version that it was compared with."""
    branch = state.tree.branches[kernel]
    return next((state.tree.nodes[candidate] for candidate in branch.expired), None)


def _best_shelved(state: State, kernel: str) -> Node | None:
    """The candidate shelved by its price that goes on when nothing else is waiting."""
    branch = state.tree.branches[kernel]
    max_pairs = state.begun.campaign.acceptance.max_pairs
    nodes = (state.tree.nodes[candidate] for candidate in branch.shelved)
    choice = reopened({
        node.candidate: node.index
        for node in nodes
        if node.index is not None
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
    start = candidate.coins_used
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
    return Due(job.model_copy(update={"programs": variants}), candidate_evidence(incumbent))


def launches(state: State, kernel: str, candidate: int) -> int:
    """Launches that make a run of ``candidate`` last about as long as the policy wants."""
    launch_s = state.tree.nodes[candidate].run_s
    if not launch_s:
        return 1
    return min(
        MAX_LAUNCHES, max(1, math.ceil(state.begun.campaign.acceptance.min_run_s / launch_s))
    )


def reserve(ledger: KernelLedger) -> Spend:
    """Device time that a job may take: one and a half times the longest one of its kernel."""
    return _reserve(ledger.job_s)


def _reserve(longest_s: float | None) -> Spend:
    return Spend(device_s=FIRST_JOB_S if longest_s is None else 1.5 * longest_s)


def _artifact(node: Node) -> Sha:
    if node.artifact is None:
        raise LookupError(f"c{node.candidate} was never built")
    return node.artifact
