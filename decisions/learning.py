"""What the knowledge keeper should learn from next."""

from itertools import islice

from decisions.device import kernel_scale
from decisions.due import Due
from decisions.fitting import is_fittable
from events.projections.state import State
from events.vocabulary import LearningRequested, Sha, Timing

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
    known = kernel_scale(state, kernel)
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
    for seq, failed in state.knowledge.unread.items():
        node = state.tree.nodes[failed.candidate]
        if state.tree.branches[node.kernel].incumbent is None:
            continue
        request = LearningRequested(
            kernel=node.kernel,
            topic="rule",
            diagnostics=failed.diagnostics,
            source=node.source,
            signature=failed.signature or "",
            snippet=failed.snippet,
            certain=failed.certain,
            known_good=_built(state, node.kernel),
        )
        return Due(request, (seq,))
    return None


def _built(state: State, kernel: str) -> tuple[Sha, ...]:
    """The sources of the baseline, of the best version, and of the latest that built."""
    nodes = (state.tree.nodes[c] for c in reversed(state.tree.branches[kernel].nodes))
    latest = islice((node.source for node in nodes if node.artifact is not None), N_BUILT)
    best = state.tree.incumbent(kernel).source
    return tuple(dict.fromkeys((state.begun.sources[kernel].baseline, best, *latest)))
