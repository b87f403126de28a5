"""The faults of a seed: the same every time, and as many as the rates say."""

from itertools import takewhile

import pytest

from sim.faults import DAY_S, Faults, Outage
from sim.rates import CALM, KINDS, MISHAPS, OUTAGES, OutageKind, Rates

DAYS = 1000.0


def outages(faults: Faults) -> list[Outage]:
    return list(takewhile(lambda outage: outage.at_s < DAYS * DAY_S, faults.outages()))


def of(kind: OutageKind, among: list[Outage]) -> list[Outage]:
    return [outage for outage in among if outage.kind == kind]


def test_a_seed_has_one_fate() -> None:
    """Everything that goes wrong follows from it."""
    one, same, other = (Faults(Rates(), seed) for seed in (1, 1, 2))

    assert outages(one) == outages(same) != outages(other)
    assert [one.of_command() for _ in range(500)] == [same.of_command() for _ in range(500)]
    assert one.n_struck == same.n_struck


def test_each_kind_has_a_fate_of_its_own() -> None:
    """Another rate of one kind leaves the others where they were, so that causes can be told."""
    usual, fuller = outages(Faults(Rates(), 1)), outages(Faults(Rates(full=5.0), 1))

    assert of("kill", usual) == of("kill", fuller)
    assert len(of("full", fuller)) > len(of("full", usual))


def test_outages_come_in_order_and_as_often_as_asked() -> None:
    """Their gaps and lengths have the means that the rates name."""
    rates = Rates()
    all_ = outages(Faults(rates, 1))

    assert all_ == sorted(all_, key=lambda outage: outage.at_s)
    for kind in OUTAGES:
        expected = getattr(rates, kind) * DAYS
        assert len(of(kind, all_)) == pytest.approx(expected, abs=5 * expected**0.5)
    mean_s = sum(outage.for_s for outage in all_) / len(all_)
    assert mean_s == pytest.approx(rates.outage_s, rel=0.1)


def test_commands_suffer_as_often_as_asked() -> None:
    """The shares of the three kinds, and of hangs, are those of the rates."""
    faults, n = Faults(Rates(crash=0.2, lost=0.1, late=0.05, hang=0.3), 1), 5000
    for _ in range(n):
        faults.of_command()
        faults.hangs()

    shares = {kind: count / n for kind, count in faults.n_struck.items() if count}
    expected = {"crash": 0.2, "lost": 0.08, "late": 0.036, "hang": 0.3}
    assert shares == pytest.approx(expected, abs=0.02)


def test_in_a_calm_world_nothing_happens() -> None:
    """No outage is dealt out and no command goes wrong."""
    faults = Faults(CALM, 1)

    assert list(faults.outages()) == []
    assert not any(faults.of_command() or faults.hangs() for _ in range(100))
    assert set(faults.n_struck) == set(KINDS) == {*MISHAPS, "hang", *OUTAGES}
    assert not any(faults.n_struck.values())
