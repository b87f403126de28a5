"""What a run claimed, beside what is true: known only where the device is a simulated one.

All of it is computed afterwards from the artifacts that the run kept; nothing of it is in the log,
so no agent and no decision has ever seen it.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from decisions.verdicts import MAX_FAULTS
from events.projections.tree import Branch, Node
from events.vocabulary import (
    CandidateAccepted,
    CandidateId,
    CandidateProposed,
    CandidateRejected,
    CandidateShelved,
    Sha,
)
from scripts.reporting.history import Run
from targets.protocol import TruthKnown

MISSED = 0.5
"""A gain of more than this that was not taken is a missed one; log-percent."""

_Word = CandidateAccepted | CandidateRejected | CandidateShelved


@dataclass(frozen=True)
class Claim:
    """What an accept claimed, and what is true; log-percent, negative is faster."""

    candidate: CandidateId
    kernel: str
    effect: float
    low: float
    high: float
    true: float

    @property
    def is_false(self) -> bool:
        """Whether it is no faster than what it replaced."""
        return self.true >= 0

    @property
    def is_covered(self) -> bool:
        """Whether its interval holds the truth."""
        return self.low <= self.true <= self.high


@dataclass(frozen=True)
class Miss:
    """An idea that was truly better when it was last set aside."""

    candidate: CandidateId
    kernel: str
    status: str
    """Rejected or shelved."""
    true: float
    """Log-percent."""
    reason: str


@dataclass(frozen=True)
class KernelTruth:
    """Where a kernel has truly got to."""

    kernel: str
    best: CandidateId
    speedup: float
    """Over the baseline."""
    time_over_bound: float
    captured: float | None
    """Share of the gain on offer that was taken; None if nothing was on offer."""


@dataclass(frozen=True)
class Truth:
    """A whole run, as it truly went."""

    claims: tuple[Claim, ...]
    """In the order of the log."""
    n_false: int
    """Accepts that are no gain."""
    n_worse: int
    """Those of them that made the best version slower."""
    n_covered: int
    """Accepts whose interval holds the truth."""
    misses: tuple[Miss, ...]
    """Gains of more than `MISSED` that were not taken, the largest first."""
    kernels: tuple[KernelTruth, ...]
    """Those that have begun, in the campaign's order."""
    geomean: float | None
    captured: float | None


class _Verdict(NamedTuple):
    node: Node
    word: _Word
    true: float
    """Against the best version that the verdict was about, log-percent."""


def truth(run: Run, read: Callable[[Sha], bytes], known: TruthKnown) -> Truth:
    """Compare a run with the truth.

    Args:
        run: whose claims.
        read: returns a blob of it.
        known: its target.

    Raises:
        LogError: an artifact is missing or damaged.
    """
    times = _Times(run, read, known)
    found = [
        _Verdict(node, word, times.effect(word.candidate, _opponent(word)))
        for word in _last_words(run)
        if _is_fit(node := run.state.tree.nodes[word.candidate])
    ]
    claims = tuple(
        Claim(node.candidate, node.kernel, word.effect, word.low, word.high, true)
        for node, word, true in found
        if isinstance(word, CandidateAccepted)
    )
    kernels = tuple(_kernels(run, times, found))
    logs = [math.log(kernel.speedup) for kernel in kernels]
    return Truth(
        claims,
        n_false=sum(claim.is_false for claim in claims),
        n_worse=sum(claim.true > 0 for claim in claims),
        n_covered=sum(claim.is_covered for claim in claims),
        misses=_misses(found),
        kernels=kernels,
        geomean=math.exp(math.fsum(logs) / len(logs)) if logs else None,
        captured=_captured(found),
    )


class _Times:
    """True times of a run's candidates, each found once per artifact."""

    def __init__(self, run: Run, read: Callable[[Sha], bytes], known: TruthKnown) -> None:
        self._nodes = run.state.tree.nodes
        self._read, self._known = read, known
        self._found: dict[tuple[str, Sha], float] = {}

    def of(self, candidate: CandidateId) -> float:
        """Seconds per launch of a candidate that was built; infinite if it hangs."""
        node = self._nodes[candidate]
        if node.artifact is None:
            raise LookupError(f"c{candidate} was never built")
        key = node.kernel, node.artifact
        if key not in self._found:
            self._found[key] = self._known.truth(node.kernel, self._read(node.artifact))
        return self._found[key]

    def over_bound(self, candidate: CandidateId) -> float:
        """Time of a candidate over the bound of its kernel."""
        return self.of(candidate) / self._known.true_bound(self._nodes[candidate].kernel)

    def effect(self, candidate: CandidateId, opponent: CandidateId) -> float:
        """Log-percent; negative is faster."""
        return 100 * math.log(self.of(candidate) / self.of(opponent))


def _last_words(run: Run) -> list[_Word]:
    """Every accept, and what was said last of each idea that ended otherwise, in the log's order.

    An idea is a move of the catalogue; without one, a candidate and its rebuilds. It comes again on
    every best version, so that all its verdicts would count one gain many times. What was said
    under an earlier toolchain is left out: the truth is of what the last one built.
    """
    idea: dict[CandidateId, Hashable] = {}
    words: dict[Hashable, _Word] = {}
    for record in run.records:
        match record.event:
            case CandidateProposed() as event:
                own = event.kernel, event.move or event.candidate
                idea[event.candidate] = idea.get(event.rebased_from or 0, own)
            case _ if record.seq <= run.state.toolchain_seq:
                pass
            case CandidateAccepted() as event:
                words.pop(idea[event.candidate], None)
                words[event.candidate] = event
            case CandidateRejected() | CandidateShelved() as event:
                words.pop(idea[event.candidate], None)
                words[idea[event.candidate]] = event
            case _:
                pass
    return list(words.values())


def _is_fit(node: Node) -> bool:
    """Whether it was built, and not turned away for what it did on the device."""
    return node.artifact is not None and node.faults < MAX_FAULTS


def _opponent(word: _Word) -> CandidateId:
    """The best version that a verdict is about."""
    return word.premise_parent if isinstance(word, CandidateShelved) else word.incumbent


def _misses(found: Sequence[_Verdict]) -> tuple[Miss, ...]:
    misses = [
        Miss(node.candidate, node.kernel, str(node.status), true, word.reason)
        for node, word, true in found
        if true < -MISSED and not isinstance(word, CandidateAccepted)
    ]
    return tuple(sorted(misses, key=lambda miss: miss.true))


def _kernels(run: Run, times: _Times, found: Sequence[_Verdict]) -> Iterator[KernelTruth]:
    for kernel in run.kernels:
        branch = run.state.tree.branches.get(kernel, Branch())
        nodes = run.state.tree.nodes
        if branch.incumbent is None or branch.baseline is None:
            continue
        if nodes[branch.incumbent].artifact and nodes[branch.baseline].artifact:
            yield KernelTruth(
                kernel,
                branch.incumbent,
                times.of(branch.baseline) / times.of(branch.incumbent),
                times.over_bound(branch.incumbent),
                _captured([verdict for verdict in found if verdict.node.kernel == kernel]),
            )


def _captured(found: Sequence[_Verdict]) -> float | None:
    """What the accepts took, false ones counted against it, over all gains on offer."""
    offered = math.fsum(-true for _, _, true in found if true < 0)
    taken = math.fsum(-v.true for v in found if isinstance(v.word, CandidateAccepted))
    return taken / offered if offered else None
