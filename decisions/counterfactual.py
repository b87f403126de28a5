"""What another acceptance policy would have made of the pairs that a run recorded."""

from collections.abc import Iterable
from dataclasses import dataclass

from decisions.acceptance import judge
from decisions.capital import Scale
from decisions.price import RUNS_PER_PAIR, Price, next_price
from decisions.verdicts import share
from events.campaign import Acceptance
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    CandidateAccepted,
    CandidateId,
    CandidateRejected,
    CandidateShelved,
    PairsMeasured,
    Record,
)

Verdict = CandidateAccepted | CandidateRejected | CandidateShelved
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
        event, job = record.event, state.ledger.running
        if isinstance(event, Verdict):
            opponent = state.tree.nodes[event.candidate].opponent
            known = trials.get((event.candidate, opponent or 0))
            if known is not None:
                price = _note(known, event, price, state)
        state.apply(record)
        if isinstance(event, PairsMeasured) and job is not None and job.purpose == "test":
            key = (job.candidate, job.incumbent)
            trial = trials.setdefault(key, Trial(key[0], job.kernel, key[1]))
            price = _judge_again(trial, state.tree.nodes[job.candidate], policy, price, state)
    return tuple(trials.values())


def _note(trial: Trial, event: Verdict, price: Price, state: State) -> Price:
    """Take down the recorded verdict; return the price after pairs without another verdict."""
    if not isinstance(event, CandidateShelved) or event.index is not None:
        trial.recorded = event.kind.removeprefix("candidate_")
        trial.n_recorded = event.n_pairs
    n_unpaid = event.n_pairs - trial.n_other
    if trial.other in ("accepted", "rejected") or n_unpaid == 0:
        return price
    return next_price(price, float(RUNS_PER_PAIR * n_unpaid), share(state))


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
    return next_price(price, float(RUNS_PER_PAIR * n_new), share(state))
