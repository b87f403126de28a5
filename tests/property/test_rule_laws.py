"""Laws of legality rules: shrinking, predicates, and what is learned in a language made up here."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from events.predicates import breaks, is_beyond, occurrences, tokens, words
from events.vocabulary import Comparison, Condition
from knowledge.rules import Failing, learn
from knowledge.shrinking import parts, shrink

LINES = st.lists(st.sampled_from(("a", "b", "c {", "}", "d (", ")", "e")), max_size=16)
TEXT = st.text(alphabet="ab1 2.,(){}_|", max_size=60)


@given(LINES, st.sets(st.integers(0, 15), min_size=1, max_size=4), st.sampled_from(("", "a", "1")))
def test_a_shrunk_source_still_fails_and_nothing_more_can_go(
    lines: list[str], needed: set[int], text: str
) -> None:
    """No line, or pair of lines with a bracket, is left that the failure does not need.

    So it is whatever text is said to be wrong.
    """
    named = [f"{line} {i}\n" for i, line in enumerate(lines)]
    need = {named[i] for i in needed if i < len(named)}

    def fails(source: str) -> bool:
        return need <= set(source.splitlines(keepends=True))

    small = shrink("".join(named), text, fails)
    kept = small.splitlines(keepends=True)

    assert fails(small)
    assert [line for line in named if line in kept] == kept
    for part in parts(kept):
        assert not fails("".join(line for i, line in enumerate(kept) if i not in part))


@given(LINES, st.integers(0, 30), st.sampled_from(("", "a", "a 0")))
def test_shrinking_stops_when_nothing_more_may_be_tried(
    lines: list[str], n_tries: int, text: str
) -> None:
    """What it has by then still fails, if anything did."""
    source = "".join(f"{line} {i}\n" for i, line in enumerate(lines))
    left = n_tries

    def fails(smaller: str) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and ("a 0\n" in smaller) == ("a 0\n" in source)

    small = shrink(source, text, fails)
    assert ("a 0\n" in small) == ("a 0\n" in source)
    assert len(small) <= len(source)


@given(TEXT)
def test_tokens_are_all_of_a_text_but_its_blanks(text: str) -> None:
    """Nothing of a source is overlooked, whatever its language."""
    assert "".join(words(text)) == "".join(text.split())
    assert all(text[t.start : t.end] == t.text for t in tokens(text))


@given(TEXT, st.data())
def test_a_condition_of_a_source_s_own_tokens_is_met_by_it(text: str, data: st.DataObject) -> None:
    """And so is one in which placeholders stand for some of them."""
    own = words(text)
    assume(own)
    begin = data.draw(st.integers(0, len(own) - 1))
    end = data.draw(st.integers(begin + 1, len(own)))
    wide = tuple("<word>" if re.match(r"[^\W\d]", part) else part for part in own[begin:end])

    assert begin in occurrences(Condition(tokens=own[begin:end]), own)
    assert begin in occurrences(Condition(tokens=wide), own)


# ---- a language of settings, whose compiler refuses numbers ----------------------------------


@dataclass(frozen=True)
class Refused:
    """A diagnostic of the language."""

    diagnostics: str
    signature: str
    snippet: str
    certain: bool = False


def compiler(key: str, comparison: Comparison, limit: int) -> Callable[[str], Refused | None]:
    """Refuse lines ``set KEY N`` with a number out of its limit, and all that is not a setting."""

    def build(source: str) -> Refused | None:
        for number, line in enumerate(source.splitlines(), start=1):
            found = re.fullmatch(r"set (speed|width|depth) (\d{1,6})", line.strip())
            if not found:
                return Refused(f"x:{number}:1: error: what is this", "error: syntax", line.strip())
            if found[1] == key and is_beyond(comparison, int(found[2]), limit):
                near = "" if comparison == "no_power_of_two" else f"; the limit is {limit}"
                what = (
                    f"{key} {found[2]} is not a power of two" if not near else f"{found[2]}{near}"
                )
                said = f"x:{number}:9: error: {what}"
                return Refused(said, f"error: {key} out of its limit", found[2])
        return None

    return build


SETTINGS = st.lists(
    st.tuples(st.sampled_from(("speed", "width", "depth")), st.integers(1, 64)), max_size=6
)


def source_of(pairs: list[tuple[str, int]]) -> str:
    return "".join(f"set {key} {n}\n" for key, n in pairs)


def test_what_a_wrong_line_needs_is_tried_first() -> None:
    """One try finds it: where its words stand first, in their brackets, of no later place."""
    head = ["kernel k\n", "\n"]
    body = ["unit H\n", "axis Q\n", "loop (\n", "  x = Q\n", "  y = x bad 9\n", ")\n", "x bad 9\n"]
    tried: list[str] = []

    def fails(source: str) -> bool:
        tried.append(source)
        return "y = x bad 9" in source and "x = Q" in source and "axis Q" in source

    shrink("".join(head + body), "bad 9", fails)
    assert tried[0] == "kernel k\naxis Q\nloop (\n  x = Q\n  y = x bad 9\n)\n"


@settings(max_examples=60)
@given(
    key=st.sampled_from(("speed", "width", "depth")),
    comparison=st.sampled_from(
        ("above", "below", "no_multiple_of", "no_divisor_of", "no_power_of_two")
    ),
    limit=st.integers(2, 40),
    before=SETTINGS,
    value=st.integers(1, 64),
    others=st.lists(SETTINGS, max_size=4),
)
def test_what_is_learned_refuses_what_the_compiler_refuses(
    key: str,
    comparison: Comparison,
    limit: int,
    before: list[tuple[str, int]],
    value: int,
    others: list[list[tuple[str, int]]],
) -> None:
    """A predicate is right on all that it was held against, and spares every source that builds."""
    build = compiler(key, comparison, limit)
    good = [s for s in map(source_of, ([], before, *others)) if build(s) is None]
    bad = source_of([*before, (key, value)])
    failed = build(bad)
    assume(failed is not None and build(source_of(before)) is None)
    assert failed is not None

    found = learn(Failing(failed.signature, [bad], good), build, lambda text: text)

    if found.predicate is None:
        assert found.doubt
        return
    assert breaks(found.predicate, words(bad))
    assert not any(breaks(found.predicate, words(source)) for source in good)
    assert all(breaks(found.predicate, words(t.source)) == t.is_refused for t in found.trials)
    assert all((build(t.source) is not None) == t.is_refused for t in found.trials)


@pytest.mark.parametrize(
    ("comparison", "limit", "value"),
    [
        ("above", 12, 40),
        ("below", 12, 3),
        ("no_multiple_of", 12, 40),
        ("no_divisor_of", 12, 5),
        ("no_power_of_two", 0, 12),
    ],
)
def test_the_limit_is_found(comparison: Comparison, limit: int, value: int) -> None:
    """From one failure, for every number that there is."""
    build = compiler("width", comparison, limit)
    bad = source_of([("speed", 3), ("width", value), ("depth", 5)])
    good = source_of([("speed", 40), ("depth", 6)])
    failed = build(bad)
    assert failed is not None
    found = learn(Failing(failed.signature, [bad], [good]), build, lambda text: text)

    assert found.predicate is not None, found.doubt
    for n in range(1, 100):
        source = source_of([("width", n)])
        assert breaks(found.predicate, words(source)) == (build(source) is not None)
