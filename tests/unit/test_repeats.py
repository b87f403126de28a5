"""Which hypotheses say the same."""

import time

import pytest

from decisions.repeats import is_same

IDEA = "Unroll the loop over rows by 4, so that loads of `w_q` overlap with the sums; 3 % faster."


@pytest.mark.parametrize(
    "again",
    [
        IDEA,
        "Unroll the loop over rows by 4 so loads of w_q overlap with the sums: 1.05x.",
        "The loop over rows, unrolled by 4: loads of w_q overlap the sums, so 2.5 percent faster",
    ],
)
def test_the_same_idea_in_other_words_and_with_another_gain_is_the_same(again: str) -> None:
    """What an author hopes for does not make it another idea."""
    assert is_same(IDEA, again)
    assert is_same(again, IDEA)


@pytest.mark.parametrize(
    "other",
    [
        IDEA.replace("by 4", "by 8"),
        IDEA.replace("w_q", "w_k"),
        "Keep x in registers over the loop over rows: its loads are a third of all by 4.",
        "",
    ],
)
def test_another_number_name_or_mechanism_is_another_idea(other: str) -> None:
    """A parameter's other value has to be measured by itself."""
    assert not is_same(IDEA, other)


def test_a_single_letter_tells_two_loops_apart() -> None:
    """Otherwise a change of the loop over k would be answered with the verdict on that over q."""
    assert not is_same("vectorize the q loop of the kernel", "vectorize the k loop of the kernel")


def test_a_thousand_comparisons_take_no_time() -> None:
    """Every hypothesis of a model is compared with as many."""
    others = [f"{IDEA} And then number {i} of something else entirely." for i in range(1000)]
    began = time.perf_counter()
    n_same = sum(is_same(IDEA, other) for other in others)

    assert n_same == 0
    assert time.perf_counter() - began < 1
