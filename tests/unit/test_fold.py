"""What the state of a run is made of, and what it lets go of."""

from collections.abc import Iterator

import pytest

from events.log import read
from events.projections.state import TAKES, State, replay
from events.projections.tree import OPEN, Status
from events.vocabulary import AnyEvent, CandidateProposed, FactLearned, PairsMeasured, Record
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, ...]:
    """A run with accepts, rejections, shelved candidates and refusals."""
    run = tmp_path_factory.mktemp("run")
    begin(run, campaign(max_candidates=30), FakeTarget(noise=0.02))
    return tuple(read(run))


def _changed(records: tuple[Record, ...]) -> Iterator[tuple[Record, ...]]:
    """The same log with one field changed in one place, in many ways."""
    for record in records:
        event = record.event
        if isinstance(event, CandidateProposed):
            yield _with(records, record, event.model_copy(update={"hypothesis": "another"}))
        elif isinstance(event, PairsMeasured):
            changed = event.model_copy(update={"device_s": event.device_s + 1e-6})
            yield _with(records, record, changed)
        elif isinstance(event, FactLearned):
            yield _with(records, record, event.model_copy(update={"claim": "another"}))


def _with(records: tuple[Record, ...], at: Record, event: AnyEvent) -> tuple[Record, ...]:
    there = at._replace(event=event)
    return (*records[: at.seq], there, *records[at.seq + 1 :])


def test_every_kind_says_what_it_does_to_the_state() -> None:
    """A new kind without a function would be refused in the middle of a run."""
    assert "_take" not in {take.__name__ for take in TAKES.values()}


def test_a_digest_does_not_depend_on_earlier_ones(records: tuple[Record, ...]) -> None:
    """A run takes one now and then, replay takes others: each candidate is hashed as it is now."""
    often = State()
    for record in records:
        often.apply(record)
        often.digest()
        if record.seq % 50 == 0 or record is records[-1]:
            assert often.digest() == replay(records[: record.seq + 1]).digest()


def test_no_change_to_what_is_settled_escapes_the_digest(records: tuple[Record, ...]) -> None:
    """Replay checks the fold by it, long after a candidate is closed or a fact is learned."""
    digest = replay(records).digest()
    others = [replay(other).digest() for other in _changed(records)]

    assert len(others) > 60
    assert digest not in others


def test_only_what_may_go_on_keeps_its_evidence(records: tuple[Record, ...]) -> None:
    """A run of a million records must fit into memory; the rest is in the log."""
    tree = replay(records).tree
    kept = {c for branch in tree.branches.values() for c in branch.shelved}
    closed = [n for n in tree.nodes.values() if n.status not in OPEN and n.is_search]

    assert {node.status for node in closed} >= {Status.ACCEPTED, Status.REFUSED, Status.SHELVED}
    assert all(
        not node.pairs and not node.evidence and node.examined is None
        for node in closed
        if node.candidate not in kept
    )
    assert all(tree.nodes[candidate].pairs for candidate in kept)
