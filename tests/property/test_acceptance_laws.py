import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.acceptance import judge
from decisions.capital import Scale, capital, effect_of
from decisions.coins import coins
from decisions.posterior import WIDEST, interval, posterior
from decisions.price import HIGHEST, LOWEST, Price, index, next_price
from events.campaign import Acceptance
from events.vocabulary import Pair

effects = st.lists(st.floats(-400, 400), max_size=40)
scales = st.floats(0.02, 30)
alphas = st.sampled_from([0.002, 0.05, 0.0005])
seconds = st.floats(1e-6, 10)
pairs = st.builds(
    Pair, candidate_first=st.booleans(), incumbent_s=seconds, candidate_s=seconds, probe_s=seconds
)
pair_lists = st.lists(pairs, max_size=30)


@given(effects, scales, alphas)
def test_capital_stays_between_nothing_and_one_over_alpha(
    effects: list[float], scale: float, alpha: float
) -> None:
    """More than 1/alpha would be a stake that cannot change the verdict."""
    assert all(0 <= held <= 1 / alpha for held in capital(effects, scale, alpha))


@given(effects, st.floats(-400, 400), scales, alphas)
def test_capital_is_a_fair_game_under_a_fair_coin(
    effects: list[float], size: float, scale: float, alpha: float
) -> None:
    """The average over both signs of the next effect is the capital now: no edge without a gain."""
    won = capital([*effects, -size], scale, alpha)[-1]
    lost = capital([*effects, size], scale, alpha)[-1]
    held = capital(effects, scale, alpha)[-1] if effects else 1.0
    assert (won + lost) / 2 == pytest.approx(held, rel=1e-12, abs=1e-300)


@given(st.lists(st.floats(0, 400), max_size=7), scales, st.sampled_from([0.25, 4.0]))
def test_a_scale_wrong_by_four_keeps_the_game_fair(
    sizes: list[float], scale: float, wrong: float
) -> None:
    """Over all orders of the coins the mean capital is exactly 1, whatever the scale says."""
    n = len(sizes)
    ends = [
        capital(
            [size if order >> i & 1 else -size for i, size in enumerate(sizes)],
            wrong * scale,
            0.05,
        )
        for order in range(2**n)
    ]
    mean = math.fsum(path[-1] if path else 1.0 for path in ends) / 2**n
    assert mean == pytest.approx(1.0, rel=1e-12)


@given(effects, scales)
def test_a_replayed_capital_has_the_same_bits(effects: list[float], scale: float) -> None:
    """Audit compares without a tolerance; each prefix also replays to its own capital."""
    path = capital(effects, scale, 0.002)
    assert path == capital(tuple(effects), scale, 0.002)
    assert all(path[:n] == capital(effects[:n], scale, 0.002) for n in range(len(effects) + 1))


@given(pairs, st.integers(-20, 20), st.floats(-5, 5))
def test_a_common_factor_on_both_times_changes_nothing(pair: Pair, power: int, slot: float) -> None:
    """The clock's rate is not evidence; powers of two are exact, so the bits must agree."""
    scaled = pair.model_copy(
        update={
            "incumbent_s": pair.incumbent_s * 2.0**power,
            "candidate_s": pair.candidate_s * 2.0**power,
        }
    )
    assert effect_of(scaled, slot) == effect_of(pair, slot)


@given(pairs, st.floats(-5, 5))
def test_changing_places_of_equal_arms_changes_only_the_sign(pair: Pair, slot: float) -> None:
    """The slot effect must not leak into the size of an effect, or the coin is not all there is."""
    swapped = pair.model_copy(
        update={
            "candidate_first": not pair.candidate_first,
            "incumbent_s": pair.candidate_s,
            "candidate_s": pair.incumbent_s,
        }
    )
    assert effect_of(swapped, slot) == pytest.approx(-effect_of(pair, slot), abs=1e-9)


@given(pair_lists, scales, st.floats(LOWEST, HIGHEST))
def test_judge_is_a_function_of_its_arguments(
    pairs: list[Pair], scale: float, price: float
) -> None:
    """Audit asks again and must hear the same; every figure is finite, so it can be recorded."""
    asked = judge(pairs, Scale(scale, 0.1), Acceptance(), price)
    assert asked == judge(tuple(pairs), Scale(scale, 0.1), Acceptance(), price)
    figures = (asked.capital, asked.index, asked.effect, asked.low, asked.high)
    assert all(math.isfinite(figure) for figure in figures if figure is not None)
    assert (asked.outcome == "accept") == (asked.capital >= 1 / Acceptance().alpha)


@given(effects, scales)
def test_an_interval_is_ordered_and_bounded(effects: list[float], scale: float) -> None:
    """Whatever was measured, a report can print it."""
    low, high = interval(effects, scale)
    assert -WIDEST <= low <= high <= WIDEST


@given(effects, scales, st.floats(0, 500))
def test_a_posterior_is_a_distribution_and_its_index_is_not_negative(
    effects: list[float], scale: float, held: float
) -> None:
    """A gain of 40 times and a slowdown of four are as finite as no difference."""
    belief = posterior(effects, scale)
    assert belief.weight.sum() == pytest.approx(1.0)
    assert 0 <= belief.p_faster <= 1.0 + 1e-9
    assert math.isfinite(belief.mean)
    assert 0 <= index(belief, held, scale, 0.002) < WIDEST


@given(st.floats(LOWEST, HIGHEST), st.floats(0, 1e6), st.floats(-1, 1e6))
def test_a_price_stays_within_its_bounds(price: float, cost: float, allowance: float) -> None:
    """A run that overspends must not price itself out of ever measuring again."""
    assert LOWEST <= next_price(Price(price), cost, allowance).value <= HIGHEST


@given(st.text("0123456789abcdef", min_size=4), st.integers(0, 50), st.integers(0, 20))
def test_a_coin_depends_on_its_index_alone(seed: str, start: int, n: int) -> None:
    """A lost job is sent again and audit starts anywhere: both must see the same coins."""
    whole = coins(seed, "qkv", 7, 3, 0, start + n)
    assert coins(seed, "qkv", 7, 3, start, n) == whole[start:]
