"""What the knowledge keeper should learn from next."""

from collections.abc import Sequence
from itertools import islice

from decisions import device
from decisions.due import Due
from decisions.fitting import is_fittable
from events.projections.knowledge import Failures
from events.projections.state import State
from events.vocabulary import CandidateExamined, LearningRequested, Predicate, Request, Sha, Timing

N_BUILT = 20
"""Latest sources known to build that a rule is held against."""


def request(state: State) -> Due | None:
    """Ask for the fact that new evidence allows.

    That is the noise, the bound, what a microbenchmark says, or a rule from a build failure.
    """
    for kernel in state.tree.branches:
        due = _noise(state, kernel) or _bound(state, kernel)
        if due:
            return due
    return _microbenchmark(state) or _rule(state)


def _noise(state: State, kernel: str) -> Due | None:
    ledger = state.ledger.of(kernel)
    n_pairs = ledger.n_aa
    wanted = state.begun.campaign.acceptance.noise_pairs
    if f"{kernel}:noise" in state.knowledge.asked or n_pairs < wanted:
        return None
    known = device.kernel_scale(state, kernel)
    figures = {"pair_sd_pct": known.pair, "slot_pct": known.slot, "n_pairs": float(n_pairs)}
    evidence = tuple(ledger.aa_seqs)
    request = LearningRequested(kernel=kernel, topic="noise", figures=figures)
    return Due(request, evidence)


def _bound(state: State, kernel: str) -> Due | None:
    ledger = state.ledger.of(kernel)
    if f"{kernel}:bound" in state.knowledge.asked or ledger.bound_seq is None:
        return None
    figures = {f"{name}_s": seconds for name, seconds in ledger.bounds_s.items()}
    figures["weight_bytes"] = float(state.begun.cards[kernel].weight_bytes)
    evidence = (ledger.bound_seq,)
    request = LearningRequested(kernel=kernel, topic="bound", figures=figures)
    return Due(request, evidence)


def _microbenchmark(state: State) -> Due | None:
    for name, probed in state.ledger.probes.items():
        if probed.seq < 0 or name in state.knowledge.fitted:
            continue
        points = state.begun.microbenchmarks[name].points
        timings = tuple(
            Timing(counts=points[point].counts, time_s=time_s)
            for point, time_s in probed.times_s.items()
        )
        if is_fittable(timings):
            request = LearningRequested(
                kernel="", topic="microbenchmark", microbenchmark=name, timings=timings
            )
            return Due(request, (probed.seq,))
    return None


def _rule(state: State) -> Due | None:
    """Ask for one rule at a time, first for the one that most failures wait for.

    What another kernel has taught goes before that: where it fits, it takes no builds.

    Where its builds would disturb a measurement, the device goes first.
    """
    if not state.begun.campaign.knowledge.rules or state.closed or device.must_be_quiet(state):
        return None
    if state.knowledge.learned or any(map(_is_of_rule, state.pending.values())):
        return None
    unread = {
        seq: evidence
        for seq, (_, evidence) in state.knowledge.unread.items()
        if state.tree.branches[_kernel(state, evidence)].incumbent is not None
    }
    if not unread:
        return None

    def gain(seq: int) -> tuple[bool, int]:
        failed = unread[seq]
        return bool(_likely(state, failed)), len(_alike(state, failed).sources)

    seq = max(unread, key=gain)
    return Due(_about(state, unread[seq]), (seq,))


def _about(state: State, failed: CandidateExamined) -> LearningRequested:
    kernel, source = _kernel(state, failed), state.tree.nodes[failed.candidate].source
    alike = _alike(state, failed)
    others = (other for other in alike.sources.values() if other != source)
    return LearningRequested(
        kernel=kernel,
        topic="rule",
        diagnostics=failed.diagnostics,
        source=source,
        signature=failed.signature or "",
        known_bad=tuple(dict.fromkeys(others)),
        known_good=_built(state, kernel, alike.counterexamples),
        elsewhere=_elsewhere(state, kernel),
        likely=_likely(state, failed),
    )


def _likely(state: State, failed: CandidateExamined) -> tuple[Predicate, ...]:
    return state.knowledge.likely(_kernel(state, failed), failed.signature)


def _alike(state: State, failed: CandidateExamined) -> Failures:
    return state.knowledge.failures_like(_kernel(state, failed), failed.signature)


def _kernel(state: State, failed: CandidateExamined) -> str:
    return state.tree.nodes[failed.candidate].kernel


def _is_of_rule(request: Request) -> bool:
    return isinstance(request, LearningRequested) and request.topic == "rule"


def _elsewhere(state: State, kernel: str) -> tuple[Sha, ...]:
    return tuple(own.baseline for name, own in state.begun.sources.items() if name != kernel)


def _built(state: State, kernel: str, counterexamples: Sequence[Sha]) -> tuple[Sha, ...]:
    """The sources of the baseline and the best version, those that refuted rules, the latest."""
    nodes = (state.tree.nodes[c] for c in reversed(state.tree.branches[kernel].nodes))
    built = (n for n in nodes if n.artifact is not None and n.toolchain == state.toolchain_digest)
    latest = islice((node.source for node in built if node.is_search), N_BUILT)
    best = state.tree.incumbent(kernel).source
    baseline = state.begun.sources[kernel].baseline
    return tuple(dict.fromkeys((baseline, best, *counterexamples, *latest)))
