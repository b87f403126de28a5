"""What another acceptance policy would have made of the pairs that a run recorded."""

from collections.abc import Iterable
from dataclasses import dataclass

from decisions.acceptance import judge
from decisions.capital import Scale
from decisions.device import allowance
from decisions.price import RUNS_PER_PAIR, Price, next_price
from events.campaign import Acceptance
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    CandidateAccepted,
    CandidateId,
    CandidateRejected,
    CandidateShelved,
    MeasurementRequested,
    PairsMeasured,
    Record,
)

WORDS = {"accept": "accepted", "reject": "rejected", "park": "shelved"}


@dataclass
class Trial:
    """One candidate against one best version, under both policies."""

    candidate: CandidateId
    kernel: str
    incumbent: CandidateId
    recorded: str = "undecided"
    n_recorded: int = 0
    """Pairs behind the recorded verdict."""
    other: str = "undecided"
    """``undecided``: it would have asked for pairs that nobody measured."""
    n_other: int = 0

    @property
    def differs(self) -> bool:
        """Whether one policy accepts what the other does not."""
        return (self.recorded == "accepted") != (self.other == "accepted")


def redecide(records: Iterable[Record], policy: Acceptance) -> tuple[Trial, ...]:
    """Judge every candidate's recorded pairs again, after each job, under ``policy``.

    The pairs are those of the recorded run: where the other policy accepts something else, later
    candidates would have been compared with another best version, and that is not known.
    """
    state, price = State(), Price(policy.start_price)
    trials: dict[tuple[CandidateId, CandidateId], Trial] = {}
    for record in records:
        request = state.pending.get(record.because[0]) if record.because else None
        state.apply(record)
        match record.event:
            case PairsMeasured() if isinstance(request, MeasurementRequested):
                if request.purpose == "test":
                    node = state.tree.nodes[request.candidate]
                    key = (request.candidate, request.incumbent)
                    trial = trials.setdefault(key, Trial(key[0], request.kernel, key[1]))
                    price = _judge_again(trial, node, policy, price, state)
            case CandidateAccepted() | CandidateRejected() | CandidateShelved() as event:
                opponent = state.tree.nodes[event.candidate].opponent
                known = trials.get((event.candidate, opponent or 0))
                if known is not None and event.n_pairs:
                    known.recorded = event.kind.removeprefix("candidate_")
                    known.n_recorded = event.n_pairs
            case _:
                pass
    return tuple(trials.values())


def _judge_again(trial: Trial, node: Node, policy: Acceptance, price: Price, state: State) -> Price:
    """Give the trial its verdict after one more job; return the price after it."""
    if trial.other in ("accepted", "rejected"):
        return price
    known = Scale(*(node.scale or (1.0, 0.0)))
    verdict = judge(node.pairs, known, policy, price.value)
    if verdict.outcome == "continue":
        return price
    n_new = len(node.pairs) - trial.n_other
    trial.other, trial.n_other = WORDS[verdict.outcome], len(node.pairs)
    return next_price(price, float(RUNS_PER_PAIR * n_new), allowance(state))
