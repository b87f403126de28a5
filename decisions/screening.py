"""The screening gate: what is screened next, and the verdict on its evidence."""

from decisions import device, static_cost
from decisions.coins import secret_int, secret_share
from decisions.due import Due
from decisions.examination import STAGES, incorrect
from events.projections.knowledge import Hits
from events.projections.state import State
from events.projections.tree import Node, Status
from events.vocabulary import (
    CandidateExamined,
    CandidateId,
    CandidateScreened,
    FactLearned,
    ScreeningRequested,
    Stage,
)

ONE_IN = 16
"""A new rule spares one candidate in so many."""


def request(state: State) -> Due | None:
    """Send the oldest proposed candidate to the pool, two per worker at most at a time.

    Where a build beside a measurement would disturb it, the device goes first.
    """
    n_busy = sum(isinstance(r, ScreeningRequested) for r in state.pending.values())
    if n_busy >= 2 * state.begun.campaign.screening.workers:
        return None
    if device.must_be_quiet(state):
        return None
    for candidate in state.tree.proposed:
        node = state.tree.nodes[candidate]
        if not state.closed or is_owed(state, node):
            return Due(_request(state, node), (node.proposed,))
    return None


def is_owed(state: State, node: Node) -> bool:
    """Whether the final pairs need a candidate that waits to be screened under a new toolchain."""
    is_known = state.tree.branches[node.kernel].incumbent is not None
    return node.candidate in state.tree.renewing or (is_known and node.form == "baseline")


def _request(state: State, node: Node) -> ScreeningRequested:
    return ScreeningRequested(
        candidate=node.candidate,
        kernel=node.kernel,
        source=node.source,
        twin=twin(state, node),
        fixture_seeds=fixture_seeds(state),
        spared_by=spared_by(state, node),
    )


def spared_by(state: State, node: Node) -> tuple[int, ...]:
    """The rules that do not refuse a candidate even if it breaks them: it is built to see.

    A rule spares one candidate in `ONE_IN`, nobody knows which, one in twice as many when a first
    one that broke it did not build, and so on: what is built in vain grows with the square root of
    what the rule refuses. No rule refuses the target's own sources, nor the best versions under a
    new toolchain: if it does, it is wrong.
    """
    in_force = rules(state, node.candidate)
    if not node.is_search or node.candidate in state.tree.renewing:
        return tuple(in_force)
    # One draw for all rules: what a proven one spares, a new one does too.
    share = secret_share(state.begun.secret_seed, "spared", node.candidate)
    n_tried = {n: state.knowledge.hits.get(n, Hits()).n_built_anyway for n in in_force}
    return tuple(n for n, tried in n_tried.items() if share * ONE_IN * (1 + tried) < 1)


def twin(state: State, node: Node) -> int | None:
    """The earlier candidate with the same source whose verdict, or trial, still stands.

    None stands under another toolchain. A shelved candidate's does not either, once its premise is
    gone: it was set aside before it was measured, or against a best version that has been replaced.
    One that only rules refused which are no longer in force was never built.
    """
    branch = state.tree.branches[node.kernel]
    if node.candidate in state.tree.renewing:
        return None
    for candidate in branch.by_normalized[node.normalized]:
        earlier = state.tree.nodes[candidate]
        if candidate >= node.candidate:
            return None
        if earlier.toolchain not in ("", state.toolchain_digest):
            continue
        if earlier.status is Status.SHELVED and (
            not earlier.n_pairs or earlier.opponent != branch.incumbent
        ):
            continue
        in_force = (state.knowledge.states[n] == "confirmed" for n in earlier.refused_by)
        if earlier.refused_by and not any(in_force):
            continue
        return candidate
    return None


def rules(state: State, candidate: CandidateId) -> dict[int, FactLearned]:
    """The legality rules that a candidate is held against, by number of the fact."""
    return state.knowledge.rules(state.tree.nodes[candidate].kernel)


def fixture_seeds(state: State) -> tuple[int, ...]:
    """Seeds of the correctness fixtures; the last is held out: it comes from the secret seed."""
    start = state.begun
    n_open = start.campaign.screening.fixtures - 1
    open_seeds = tuple(start.campaign.seed + i for i in range(n_open))
    return (*open_seeds, secret_int(start.secret_seed, "held-out fixture"))


def verdict(state: State) -> Due | None:
    """Decide about the candidate whose evidence has waited longest."""
    for candidate in state.tree.examined:
        node = state.tree.nodes[candidate]
        if node.examined is None:
            raise LookupError(f"c{candidate} has no evidence")
        screened = gate(node.examined, state.begun.campaign.screening.fixtures)
        if screened.passed and (why := static_cost.hopeless(state, node)):
            screened = CandidateScreened(
                candidate=candidate, passed=False, stage="cost", reason=why
            )
        return Due(screened, tuple(node.evidence))
    return None


def gate(evidence: CandidateExamined, n_fixtures: int) -> CandidateScreened:
    """Judge screening evidence.

    A candidate passes if all stages ran and passed, and every fixture has a margin of at most 1.
    The fixtures' own figures decide, not what the worker made of them.
    """
    by_stage = {report.stage: report for report in evidence.stages}

    def refused(stage: Stage, reason: str) -> CandidateScreened:
        return CandidateScreened(
            candidate=evidence.candidate, passed=False, stage=stage, reason=reason
        )

    for stage in STAGES:
        report = by_stage.get(stage)
        if report is None:
            return refused(stage, "no evidence of this stage")
        if not report.passed and stage != "correctness":
            return refused(stage, report.detail)
    for fixture in evidence.fixtures:
        if wrong := incorrect([fixture]):
            return refused("correctness", f"{fixture.fixture}: {wrong}")
    if len(evidence.fixtures) < n_fixtures:
        return refused("correctness", f"only {len(evidence.fixtures)} of {n_fixtures} fixtures ran")
    worst = max(f.margin or 0.0 for f in evidence.fixtures)
    return CandidateScreened(
        candidate=evidence.candidate,
        passed=True,
        stage=None,
        reason=f"correct on {n_fixtures} fixtures, worst error {worst:.2f} of the tolerance",
    )
