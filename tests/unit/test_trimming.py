"""A prompt that is too long loses what is least useful, and says what."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from decisions.brief import Known, Lesson
from decisions.evidence import left_out
from prompts.render import Prompt, render
from prompts.trimming import n_tokens
from tests.support.golden_prompts import BRIEF, TEXTS

FACTS = (
    Known("f1", "The bound is 1 ms.", "confirmed", is_rule=False, uses=0),
    Known("f2", "A rule that two candidates cited.", "confirmed", is_rule=True, uses=2),
    Known("f3", "A rule that nobody cited.", "confirmed", is_rule=True, uses=0),
    Known("f4", "Nobody has checked this.", "proposed", is_rule=False, uses=0),
)
LESSONS = tuple(Lesson(i, "step", f"Idea {i}.", "rejected: slower", None) for i in range(10, 13))
TOLD = replace(BRIEF, facts=FACTS, lessons=LESSONS, tried=("step:a", "step:b"))


def within(limit: int) -> Prompt:
    return render("optimizer", "step", TOLD, texts=TEXTS, toolchain={}, limit=limit)


def test_the_least_useful_goes_first() -> None:
    """Moves, what is doubted, unused rules, used ones, old lessons; what was measured goes last."""
    whole = n_tokens(within(10**6).text)
    order: list[str] = []
    for limit in range(whole, 0, -1):
        dropped = within(limit).dropped
        order += [name for name in dropped if name not in order]

    assert order == [
        "1 moves", "2 moves", "f4", "f3", "f2", "1 lessons", "2 lessons", "3 lessons", "f1",
    ]  # fmt: skip


def test_what_is_left_out_is_not_in_the_prompt_which_says_so() -> None:
    """The author knows that there is more, and audit reads the same from the prompt."""
    prompt = within(n_tokens(within(10**6).text) - 60)

    assert "f4" in prompt.dropped
    assert "Nobody has checked this." not in prompt.text
    assert f"\nLeft out for length: {', '.join(prompt.dropped)}.\n" in prompt.text
    assert left_out(prompt.text) == prompt.dropped
    assert left_out(within(10**6).text) == ()


def test_what_cannot_be_left_out_stays_however_long_it_is() -> None:
    """A source without its end is no source."""
    prompt = within(1)

    assert "int best;" in prompt.text
    assert "makespan 1200" in prompt.text
    assert "Try a table." in prompt.text


@given(st.integers(1, 3000), st.integers(0, 60), st.integers(0, 60))
def test_a_prompt_keeps_its_limit_while_there_is_anything_to_leave_out(
    limit: int, n_facts: int, n_lessons: int
) -> None:
    """And leaves nothing out that there is room for: one thing more would not fit."""
    facts = tuple(Known(f"f{i}", "claim " * 9, "confirmed", True, i) for i in range(n_facts))
    lessons = tuple(Lesson(i, "step", "idea " * 9, "rejected", None) for i in range(n_lessons))
    told = replace(TOLD, facts=facts, lessons=lessons, tried=())
    prompt = render("analyst", "analyse", told, texts=TEXTS, toolchain={}, limit=limit)
    n_dropped = sum(name.startswith("f") for name in prompt.dropped)
    n_dropped += sum(int(name.split()[0]) for name in prompt.dropped if " " in name)

    assert n_tokens(prompt.text) <= limit or n_dropped == n_facts + n_lessons
    if n_dropped:
        longer = render(
            "analyst", "analyse", told, texts=TEXTS, toolchain={}, limit=n_tokens(prompt.text) + 30
        )
        assert len(longer.dropped) <= len(prompt.dropped)
