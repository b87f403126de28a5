"""The long history of the benchmarks is one that a run could have written."""

from collections import Counter
from collections.abc import Iterator

from benchmarks.histories import long_run
from decisions.plan import decide
from events.projections.state import State
from events.vocabulary import (
    CandidateProposed,
    KernelFinished,
    MeasurementRequested,
    Record,
    Reply,
    RunFinished,
    TurnAssigned,
)

N = 2_000
"""Records: an opening and three repetitions."""


def _problems(record: Record, state: State) -> Iterator[str]:
    event = record.event
    if record.seq != state.seq + 1:
        yield "a gap"
    if isinstance(event, KernelFinished | RunFinished):
        yield "an end in the middle"
    if isinstance(event, Reply) and record.because[0] not in state.pending:
        yield "a reply to nothing"
    if isinstance(event, CandidateProposed) and event.candidate != state.tree.next_id:
        yield "another candidate than the next"
    if isinstance(event, TurnAssigned) and event.turn != state.desk.n_turns + 1:
        yield "another turn than the next"
    if isinstance(event, MeasurementRequested):
        branch = state.tree.branches[event.kernel]
        if state.ledger.running or event.job != state.ledger.jobs + 1:
            yield "another job than the next"
        if event.incumbent != branch.incumbent:
            yield "a comparison with what is not the best version"


def test_a_long_history_is_one_run() -> None:
    """Figures from a history that no run writes say nothing about runs."""
    state, forms, problems = State(), Counter[str](), []
    for record in long_run(N):
        problems += [f"{record.seq}: {problem}" for problem in _problems(record, state)]
        state.apply(record)
        if isinstance(record.event, CandidateProposed):
            forms[record.event.form] += 1
    decide(state)

    assert problems == []
    assert (forms["baseline"], forms["canary_slow"]) == (2, 2)
    assert forms["step"] > forms["design"] > 30


def test_nothing_piles_up_in_a_long_history() -> None:
    """Work under way is no more at the end of a long run than at its beginning."""
    state, most = State(), Counter[str]()
    for record in long_run(N):
        state.apply(record)
        n_open = sum(len(branch.open) for branch in state.tree.branches.values())
        most |= Counter(
            pending=len(state.pending), reserved=len(state.spending.reserved), open=n_open,
            threads=len(state.desk.threads), turns=len(state.desk.turns),
            unread=len(state.knowledge.unread), rebased=len(state.tree.rebased_onto),
        )  # fmt: skip

    assert max(most.values()) < 20
