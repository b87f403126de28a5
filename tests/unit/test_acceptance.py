import hashlib
import math
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.noise import MODELS
from benchmarks.repeated import cross_check, false_accepts, null_effects
from decisions.acceptance import SENTINEL_LIMIT, Verdict, judge, sentinel
from decisions.capital import DEFAULT, FLOOR, MIN_AA, Scale, capital, effect_of, reaches, scale
from decisions.coins import coins, secret_int
from decisions.posterior import WIDEST, interval, posterior
from decisions.price import HIGHEST, LOWEST, Price, allowance, next_price, reopened
from events.campaign import Acceptance
from events.vocabulary import Pair

QUIET = Scale(pair=0.71, slot=0.0)
POLICY = Acceptance()


def measured(effects: Sequence[float], slot: float = 0.0) -> list[Pair]:
    """Pairs with these effects, the candidate first in every other one."""
    return [
        Pair(
            candidate_first=i % 2 == 0,
            incumbent_s=1e-3,
            candidate_s=1e-3 * math.exp((effect + (slot if i % 2 == 0 else -slot)) / 100),
            probe_s=1e-4,
        )
        for i, effect in enumerate(effects)
    ]


def verdict(effects: Sequence[float], scale: Scale = QUIET, price: float = 0.003) -> Verdict:
    return judge(measured(effects), scale, POLICY, price)


# ---- coins


def test_coins_are_fair() -> None:
    """10,000 tosses of one comparison: within four standard deviations of half."""
    assert abs(sum(coins("ab" * 32, "attn", 5, 2, 0, 10_000)) - 5000) < 200


def test_a_coin_is_one_bit_of_a_hash_that_anyone_can_redo() -> None:
    """The recorded order is only evidence if the rule that made it is public."""
    by_hand = hashlib.sha256(b"seed|qkv|17|4|2").digest()[0] & 1
    assert coins("seed", "qkv", 17, 4, 2, 1) == (bool(by_hand),)


def test_coins_differ_between_comparisons() -> None:
    """A coin shared by two comparisons would tie their errors together."""
    tossed = {
        coins("seed", kernel, candidate, incumbent, 0, 64)
        for kernel in ("qkv", "attn")
        for candidate in (3, 4)
        for incumbent in (1, 2)
    }
    assert len(tossed) == 8


def test_secret_ints_are_63_bit_and_named_by_their_labels() -> None:
    """Fixture seeds go into signed 64-bit fields."""
    numbers = {secret_int("seed", "fixture", "qkv", i) for i in range(100)}
    assert len(numbers) == 100
    assert all(0 <= number < 2**63 for number in numbers)
    assert secret_int("seed", "fixture", "qkv", 0) in numbers


# ---- scale and effects


def test_scale_is_the_robust_deviation_and_the_slot_effect_its_median() -> None:
    """One spike in ten must not blunt the test."""
    rng = np.random.default_rng(1)
    effects = rng.normal(0, 0.7, 200)
    effects[::10] += 20
    found = scale(measured(effects.tolist(), slot=0.3))
    assert found.pair == pytest.approx(0.7, rel=0.25)
    assert found.slot == pytest.approx(0.3, abs=0.15)


def test_scale_uses_the_last_200_pairs() -> None:
    """The device of yesterday is not the device of today."""
    quiet, loud = [0.1, -0.1] * 100, [5.0, -5.0] * 100
    assert scale(measured(loud + quiet)) == scale(measured(quiet))


def test_scale_has_a_default_and_a_floor() -> None:
    """Too few pairs or nothing but ties must still give a scale to divide by."""
    assert scale(measured([1.0] * (MIN_AA - 1))) == DEFAULT
    assert scale(measured([0.0] * 50)).pair == FLOOR


def test_mostly_ties_leave_the_mean_deviation() -> None:
    """On a coarse clock the MAD is 0 while the pairs still differ."""
    assert scale(measured([0.0] * 30 + [1.0, -1.0] * 10)).pair == pytest.approx(0.5, rel=0.01)


def test_the_slot_effect_is_taken_off_either_way() -> None:
    """Its sign follows the order: d - p if the candidate ran first, d + p if second."""
    first, second = measured([1.0, 1.0], slot=0.3)
    assert effect_of(first, 0.3) == pytest.approx(1.0)
    assert effect_of(second, 0.3) == pytest.approx(1.0)


# ---- capital


def test_first_bet_is_the_share_weighted_stake() -> None:
    """0.5, 0.3, 0.2 of one unit on tanh(0.4 a), tanh(0.8 a), tanh(2 a), by hand at a = 1."""
    stake = 0.5 * math.tanh(0.4) + 0.3 * math.tanh(0.8) + 0.2 * math.tanh(2.0)
    won, lost = capital([-0.71], 0.71, 0.002)[0], capital([0.71], 0.71, 0.002)[0]
    assert won == pytest.approx(1 + stake, rel=1e-15)
    assert lost == pytest.approx(1 - stake, rel=1e-15)


def test_capital_is_the_sum_of_the_bettors_until_the_cap_binds() -> None:
    """Each bettor plays its own wealth: their sum is the wealth-weighted mean of the stakes."""
    effects, total = [-0.5, 0.3, -1.2, -0.1, 2.0, -0.9], 0.0
    for share, rate in ((0.5, 0.4), (0.3, 0.8), (0.2, 2.0)):
        for effect in effects:
            stake = math.tanh(rate * min(abs(effect) / 0.71, 1.5))
            share *= 1 - math.copysign(stake, effect)
        total += share
    assert capital(effects, 0.71, 0.002)[-1] == pytest.approx(total, rel=1e-12)


def test_the_worked_example_of_the_documentation_holds() -> None:
    """A reader with a pocket calculator must get what the code gets."""
    assert capital([-0.6, 0.2, -1.4], 0.71, 0.002) == pytest.approx([1.526, 1.149, 1.963], abs=5e-4)


def test_an_outlier_counts_as_one_and_a_half_scales() -> None:
    """A spike of +20 % is no more evidence than an ordinary loss."""
    assert capital([-1.5], 1.0, 0.002) == capital([-370.0], 1.0, 0.002)


def test_a_tie_leaves_the_capital() -> None:
    """The coin decided nothing, so nothing is won."""
    assert capital([0.0, -1.0, 0.0], 1.0, 0.002)[1:] == capital([-1.0, 0.0], 1.0, 0.002)


def test_capital_ends_at_exactly_one_over_alpha() -> None:
    """The last stake is only what is needed, and later pairs stake nothing."""
    path = capital([-9.0] * 11 + [9.0], 1.0, 0.002)
    assert path[-2:] == (500.0, 500.0)
    assert path[-3] < 500.0


def test_thousands_of_losses_leave_finite_capital() -> None:
    """A sentinel runs through the whole campaign."""
    assert 0 <= capital([3.0] * 3000 + [-3.0] * 3000, 1.0, 0.001)[-1] <= 1000


@pytest.mark.parametrize(("scale", "alpha"), [(0.0, 0.002), (1.0, 0.0), (1.0, 1.0)])
def test_capital_refuses_a_game_without_rules(scale: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="need scale > 0"):
        capital([1.0], scale, alpha)


@pytest.mark.parametrize("name", MODELS)
def test_equal_candidates_are_accepted_no_more_often_than_alpha(name: str) -> None:
    """Looked at after every pair, under every noise of the benchmark; 0.005 is three errors up."""
    assert false_accepts(MODELS[name], np.random.default_rng(1), 2000, 60) <= 0.005


def test_the_vector_form_of_the_benchmark_bets_as_capital_does() -> None:
    """What the benchmark says of the rule must be about the rule."""
    effects, scale = null_effects(MODELS["all together"], np.random.default_rng(1), (50, 60))
    assert cross_check(effects - 0.5 * scale, scale, POLICY.alpha) == 0


# ---- belief


def test_posterior_mean_follows_large_effects() -> None:
    """Real pairs go from 40 times faster to four times slower."""
    for truth in (-370.0, -2.0, 0.0, 140.0):
        belief = posterior([truth - 0.3, truth, truth + 0.3] * 8, 0.5)
        assert belief.mean == pytest.approx(truth, abs=0.1)
        assert belief.sd < 0.3


def test_posterior_shrugs_at_one_outlier() -> None:
    """A spike in one pair must not throw away a gain that nine others show."""
    assert posterior([-2.0] * 9 + [20.0], 0.71).p_faster > 0.999


def test_interval_is_what_the_same_bets_cannot_rule_out() -> None:
    """A shift just outside is ruled out at 1/40, one just inside is not."""
    effects = np.random.default_rng(2).normal(-1, 0.7, 40).tolist()
    low, high = interval(effects, 0.7)
    assert low < -1 < high < 0
    assert reaches([effect - (high + 1e-6) for effect in effects], 0.7, 40)
    assert not reaches([effect - (high - 1e-6) for effect in effects], 0.7, 40)


def test_interval_has_no_ends_before_seven_pairs() -> None:
    """Fewer coins cannot carry 95 % certainty on either side."""
    assert interval([-2.0] * 6, 0.7) == (-WIDEST, WIDEST)
    assert interval([-2.0] * 7, 0.7)[1] < WIDEST


# ---- price


def test_price_moves_as_stated() -> None:
    """exp(0.02 (min(cost / allowance, 8) - 1)), so it stands when each costs its allowance."""
    assert next_price(Price(0.003), 10, 10).value == pytest.approx(0.003)
    assert next_price(Price(0.003), 0, 10).value == pytest.approx(0.003 * math.exp(-0.02))
    assert next_price(Price(0.003), 999, 10).value == pytest.approx(0.003 * math.exp(0.14))
    assert next_price(Price(0.003), 5, 0).value == pytest.approx(0.003 * math.exp(0.14))


def test_price_keeps_its_bounds() -> None:
    assert next_price(Price(LOWEST), 0, 10).value == LOWEST
    assert next_price(Price(HIGHEST), 999, 10).value == HIGHEST


def test_allowance_is_shared_by_the_candidates_still_expected() -> None:
    assert allowance(300, 30) == 10
    assert allowance(300, 0) == 300


def test_the_best_parked_candidate_goes_on_until_the_runner_up_is_better() -> None:
    """An empty queue is the only time when device time is worth nothing else."""
    assert reopened({4: 0.001, 9: 0.002, 5: 0.0005}) == (9, Price(0.001))
    assert reopened({4: 0.001}) == (4, Price(LOWEST))
    assert reopened({4: LOWEST / 2}) is None
    assert reopened({}) is None


# ---- verdicts


def test_an_obvious_gain_is_accepted_after_eleven_pairs() -> None:
    """The bettors' shares and slopes allow no fewer at alpha 0.002, however large the gain."""
    for gain in (-3.0, -230.0):
        assert verdict([gain] * 10).outcome == "continue"
        said = verdict([gain] * 11)
        assert (said.outcome, said.capital) == ("accept", 500.0)
        assert said.effect == pytest.approx(gain, abs=0.1)
        assert said.low is not None
        assert said.high is not None
        assert said.low < gain < said.high < 0


def test_a_slow_candidate_is_dropped_after_one_pair() -> None:
    """Three per cent slower is four standard deviations: giving up is the biggest lever."""
    assert verdict([3.0]).outcome in ("park", "reject")


def test_a_hopeless_candidate_is_rejected() -> None:
    """Its index is below the lowest price, so it could never go on."""
    said = verdict([300.0], Scale(5.0, 0.0))
    assert said.outcome == "reject"
    assert said.index < LOWEST


def test_the_reverse_test_rejects() -> None:
    """The positive control: a known delay is proven slower, by the same bets."""
    said = verdict([1.0] * 20, price=0.0)
    assert said.outcome == "reject"
    assert said.capital < 0.01
    assert said.low is not None
    assert said.low > 0


def test_price_decides_between_going_on_and_parking() -> None:
    assert verdict([-0.5, -0.4], price=LOWEST).outcome == "continue"
    said = verdict([-0.5, -0.4], price=HIGHEST)
    assert said.outcome == "park"
    assert "below the price" in said.reason


def test_a_candidate_without_a_verdict_is_parked_at_the_limit() -> None:
    """The longest a candidate can hold the device."""
    few = Acceptance(max_pairs=9)
    said = judge(measured([-2.0] * 9), QUIET, few, LOWEST)
    assert said.outcome == "park"
    assert "within 9 pairs" in said.reason


def test_recorded_figures_have_nine_digits() -> None:
    """The last bits of tanh, log and exp are the C library's; audit may run on another one."""
    said = verdict([-0.5, -0.4, 0.123456789123])
    noise = scale(measured([0.1, -0.3, 0.7, 0.123456789123]))

    for figure in (said.capital, noise.pair, noise.slot, next_price(Price(0.003), 3, 10).value):
        assert figure == float(f"{figure:.9g}")


def test_every_candidate_gets_its_first_pair() -> None:
    said = judge([], QUIET, POLICY, HIGHEST)
    assert said.outcome == "continue"
    assert (said.capital, said.effect, said.low, said.high) == (1.0, None, None, None)


def test_a_lower_alpha_takes_more_pairs() -> None:
    """1/N when at most one false accept is to be proven."""
    strict = Acceptance(alpha=1 / 3000)
    assert judge(measured([-3.0] * 11), QUIET, strict, LOWEST).outcome == "continue"
    assert judge(measured([-3.0] * 14), QUIET, strict, LOWEST).outcome == "accept"


# ---- sentinel


def test_sentinel_stays_low_on_a_fair_harness_and_sounds_on_a_biased_one() -> None:
    """Equal binaries whose arms differ mean that something other than the code is measured."""
    rng = np.random.default_rng(3)
    fair = sentinel(measured(rng.normal(0, 0.7, 300).tolist()), QUIET)
    assert max(fair) < SENTINEL_LIMIT
    biased = sentinel(measured(rng.normal(0.5, 0.7, 300).tolist()), QUIET)
    assert biased[1] == SENTINEL_LIMIT
    assert biased[0] < 1
