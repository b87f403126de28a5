"""What the device does next, and what must not happen beside it."""

import itertools
from pathlib import Path

from decisions.plan import decide
from events.log import read
from events.projections.state import State
from events.vocabulary import MeasurementRequested, ScreeningRequested
from tests.support.fake_target import FakeTarget
from tests.support.runs import begin, campaign


def test_nothing_is_screened_while_a_shared_host_measures(tmp_path: Path) -> None:
    """A build on the other core moves memory-bound times by a multiple of a real effect."""
    begin(tmp_path, campaign(max_candidates=12), FakeTarget(shares_host=True))
    state, n_jobs = State(), 0
    for record in read(tmp_path):
        if isinstance(record.event, MeasurementRequested):
            n_jobs += 1
            assert not any(isinstance(r, ScreeningRequested) for r in state.pending.values())
        if isinstance(record.event, ScreeningRequested):
            assert state.ledger.running is None
        state.apply(record)

    assert n_jobs > 20
    assert state.finished


def test_the_final_pairs_wait_for_screening_on_a_shared_host(tmp_path: Path) -> None:
    """The figures that people copy are taken on a quiet machine as well."""
    begin(tmp_path, campaign(max_candidates=6), FakeTarget(shares_host=True))
    state = State()
    for record in read(tmp_path):
        if isinstance(record.event, MeasurementRequested) and record.event.purpose == "final":
            break
        state.apply(record)
    examined = state.seq + 1
    request = ScreeningRequested(
        candidate=9, kernel="alpha", source="0" * 64, twin=None, fixture_seeds=()
    )
    state.pending[examined] = request
    waits = decide(state)
    del state.pending[examined]
    due = decide(state)

    assert waits is None
    assert due is not None
    assert due.event == record.event


def test_a_device_of_its_own_measures_beside_screening(tmp_path: Path) -> None:
    """Elsewhere the device never waits for a build."""
    begin(tmp_path, campaign(max_candidates=12), FakeTarget())
    state, n_together = State(), 0
    for record in read(tmp_path):
        state.apply(record)
        busy = any(isinstance(r, ScreeningRequested) for r in state.pending.values())
        n_together += busy and state.ledger.running is not None

    assert n_together > 0


def test_every_kernel_gets_the_device(tmp_path: Path) -> None:
    """The queue shares the device by weight, with a floor for each kernel."""
    ticks = itertools.count()
    state = begin(tmp_path, campaign(max_candidates=20), clock=lambda: float(next(ticks)))

    alpha, beta = (state.ledger.kernels[k].device_s for k in ("alpha", "beta"))
    assert 0.25 < alpha / beta < 4
