"""From the offending text of a small source to the widest condition that experiments bear out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import Final

from events.predicates import (
    LIMITED,
    NUMBER,
    PLACEHOLDERS,
    WORD,
    Token,
    number,
    occurrences,
    tokens,
    words,
)
from events.vocabulary import Condition
from knowledge.bench import Bench, Refusal
from knowledge.comparing import Limit, error_line, find_limit

MAX_TOKENS: Final = 40
"""A longer text is no rule: it is one source's own."""
N_OTHERS: Final = 2
"""Other words, or numbers, that one is replaced by, to see whether it matters."""
FRESH: Final = "kw_any"
"""A name that no source has."""


@dataclass(frozen=True)
class Found:
    """A condition, with what was tried to find its limit: sources, and whether each is refused."""

    condition: Condition
    trials: tuple[tuple[str, bool], ...]
    is_own: bool
    """Whether it can be of one kernel alone: words of the author's, or another kernel's rule."""


@dataclass(frozen=True)
class Doubt:
    """Why there is no condition."""

    why: str


class Generalization:
    """One reproducer, and what experiments say of its tokens.

    Args:
        source: small, and fails with the bench's signature.
        failed: how.
        good: words of the sources known to build, in their normal form.
        bench: where variants are built.
    """

    def __init__(
        self, source: str, failed: Refusal, good: Sequence[Sequence[str]], bench: Bench
    ) -> None:
        self._source, self._failed, self._good, self._bench = source, failed, good, bench
        self._tokens = tokens(source)
        self._message = error_line(failed.diagnostics)
        self._limit: Limit | None = None
        self._hole = -1
        self._behind = _successors(good)

    def condition(self) -> Found | Doubt:
        """Find the widest condition that no source known to build meets."""
        at = self._offending()
        if at is None:
            return Doubt("the offending text is not in the source as written")
        begin, end = at if self._failed.certain else self._with_context(*at)
        if end - begin > MAX_TOKENS:
            return Doubt("the offending text is too long to be one of several")
        self._find_limit((*range(*at), *range(begin, end)))
        grown = self._grown(begin, end, *self._line(*at))
        if grown is None:
            return Doubt("the same text is in a source that builds")
        condition = self._widened(*grown)
        if isinstance(condition, Doubt):
            return condition
        trials = self._limit.trials if self._limit else ()
        variants = tuple((self._replaced({self._hole: str(n)}), says) for n, says in trials)
        condition = _trimmed(condition, self._good)
        return Found(condition, variants, any(map(self._is_name, condition.tokens)))

    # ---- where ------------------------------------------------------------------------------

    def _offending(self) -> tuple[int, int] | None:
        """The last place of the offending text: what stood behind the error has been left out."""
        snippet, texts = words(self._failed.snippet), [t.text for t in self._tokens]
        if not snippet:
            return None
        places = list(occurrences(Condition(tokens=snippet), texts))
        return (places[-1], places[-1] + len(snippet)) if places else None

    def _line(self, begin: int, end: int) -> tuple[int, int]:
        """The tokens on the lines of some tokens."""
        first = self._source.rfind("\n", 0, self._tokens[begin].start) + 1
        last = self._source.find("\n", self._tokens[end - 1].start)
        last = len(self._source) if last < 0 else last
        inside = [i for i, t in enumerate(self._tokens) if first <= t.start < last]
        return inside[0], inside[-1] + 1

    def _with_context(self, begin: int, end: int) -> tuple[int, int]:
        """Add what the diagnostic mentions, and the next keywords before that make this fail."""
        first, last = self._line(begin, end)
        mentioned = {token.text for token in tokens(self._message) if token.is_word}
        inside = [
            i for i in (*range(first, begin), *range(end, last)) if self._text(i) in mentioned
        ]
        begin, end = min((begin, *inside)), max((end, *(i + 1 for i in inside)))
        keywords = (i for i in reversed(range(first, begin)) if self._is_keyword(i))
        return min((begin, *takewhile(self._matters, keywords))), end

    def _matters(self, i: int) -> bool:
        """Whether another keyword in its place does not fail alike."""
        others = self._usual(i)[:N_OTHERS]
        return any(self._bench.alike(self._replaced({i: other})) is False for other in others)

    def _is_keyword(self, i: int) -> bool:
        return self._tokens[i].is_word and not self._is_name(self._text(i))

    def _grown(self, begin: int, end: int, first: int, last: int) -> tuple[int, int] | None:
        """Take in neighbours on the line until no source known to build holds the same."""
        while self._says_nothing(self._literal(begin, end)):
            if begin > first:
                begin -= 1
            elif end < last:
                end += 1
            else:
                return None
        return begin, end

    # ---- how wide ---------------------------------------------------------------------------

    def _find_limit(self, places: Sequence[int]) -> None:
        """Look for the number that is out of its limit; what is wrong is mostly said first."""
        said = words(self._message)
        numbers = [i for i in places if (t := self._text(i)).isdecimal() and t in said]
        for i in sorted(numbers, key=lambda i: said.index(self._text(i))):
            value = int(self._text(i))
            self._limit = find_limit(value, self._message, partial(self._is_refused, i))
            if self._limit:
                self._hole = i
                return

    def _is_refused(self, i: int, n: int) -> bool | None:
        return self._bench.alike(self._replaced({i: str(n)}))

    def _literal(self, begin: int, end: int) -> Condition:
        """The condition on the very tokens, but for the number that has a limit."""
        texts = [LIMITED if i == self._hole else self._text(i) for i in range(begin, end)]
        if self._limit is None or LIMITED not in texts:
            return Condition(tokens=tuple(texts))
        comparison, limit, _ = self._limit
        return Condition(tokens=tuple(texts), comparison=comparison, limit=limit)

    def _widened(self, begin: int, end: int) -> Condition | Doubt:
        """Put a placeholder for every token that may be another one."""
        condition = self._literal(begin, end)
        for i in range(begin, end):
            if i == self._hole:
                continue
            wider = self._wider(condition, i, i - begin)
            if wider is not None and not self._says_nothing(wider):
                condition = wider
            elif self._limit is None and self._is_name(name := self._text(i)):
                return Doubt(f"it depends on what `{name}` is")
        return condition

    def _wider(self, condition: Condition, i: int, place: int) -> Condition | None:
        token = self._tokens[i]
        if token.is_word and self._may_be_any_word(i):
            return _with(condition, place, WORD)
        if number(token.text) is not None and self._may_be_any_number(i):
            return _with(condition, place, NUMBER)
        return None

    def _may_be_any_word(self, i: int) -> bool:
        """Whether all others that are usual there fail alike, or any name of a lone author."""
        usual, text = self._usual(i), self._text(i)
        if not self._is_name(text):
            usual = usual[:N_OTHERS]
            return bool(usual) and all(self._fails_alike({i: other}) for other in usual)
        if self._failed.certain or self._fails_alike({i: FRESH}):
            return True
        own = dict.fromkeys(t.text for t in reversed(self._tokens) if t.is_word)
        alike = [self._fails_alike({i: w}) for w in usual if w in own][:N_OTHERS]
        if alike:
            return all(alike)
        names = (w for w in own if w != text and self._is_name(w))
        return any(self._fails_alike({i: name}) for name in islice(names, N_OTHERS))

    def _may_be_any_number(self, i: int) -> bool:
        others = [n for n in ("1", "2", "3") if n != self._text(i)][:N_OTHERS]
        return all(self._fails_alike({i: other}) for other in others)

    def _is_name(self, text: str) -> bool:
        """Whether the author chose a word: a new one in all its places fails alike."""
        if not Token(text, 0).is_word:
            return False
        everywhere = {i: FRESH for i, token in enumerate(self._tokens) if token.text == text}
        return bool(everywhere) and self._bench.fails(self._replaced(everywhere))

    def _fails_alike(self, changes: dict[int, str]) -> bool:
        """Whether a variant fails alike, and with an allowed number does not."""
        if not self._bench.fails(self._replaced(changes)):
            return False
        trials = self._limit.trials if self._limit else ()
        allowed = next((str(n) for n, is_refused in trials if not is_refused), None)
        if allowed is None:
            return True
        return self._bench.alike(self._replaced({**changes, self._hole: allowed})) is False

    # ---- variants ---------------------------------------------------------------------------

    def _says_nothing(self, condition: Condition) -> bool:
        return says_nothing(condition, self._good)

    def _usual(self, i: int) -> list[str]:
        """Other words that stand behind the same token in sources that build, usual ones first."""
        usual = self._behind.get(self._text(i - 1) if i else "", Counter())
        text = self._text(i)
        return [w for w, _ in usual.most_common() if w != text and Token(w, 0).is_word]

    def _text(self, i: int) -> str:
        return self._tokens[i].text

    def _replaced(self, changes: dict[int, str]) -> str:
        """The source with other texts for some tokens."""
        pieces, at = [], 0
        for i in sorted(changes):
            pieces += [self._source[at : self._tokens[i].start], changes[i]]
            at = self._tokens[i].end
        return "".join((*pieces, self._source[at:]))


def says_nothing(condition: Condition, good: Sequence[Sequence[str]]) -> bool:
    """Whether a condition has no text of its own, or a source that builds meets it."""
    if PLACEHOLDERS.issuperset(condition.tokens):
        return True
    return any(any(True for _ in occurrences(condition, text)) for text in good)


def _with(condition: Condition, place: int, part: str) -> Condition:
    parts = (*condition.tokens[:place], part, *condition.tokens[place + 1 :])
    return condition.model_copy(update={"tokens": parts})


def _trimmed(condition: Condition, good: Sequence[Sequence[str]]) -> Condition:
    """Leave out placeholders at the ends, where that says no less."""
    while len(condition.tokens) > 1:
        for shorter in (condition.tokens[1:], condition.tokens[:-1]):
            gone = condition.tokens[0] if shorter == condition.tokens[1:] else condition.tokens[-1]
            fewer = condition.model_copy(update={"tokens": shorter})
            if gone in (WORD, NUMBER) and not says_nothing(fewer, good):
                condition = fewer
                break
        else:
            return condition
    return condition


def _successors(good: Sequence[Sequence[str]]) -> dict[str, Counter[str]]:
    """How often each token stands behind another one."""
    behind: dict[str, Counter[str]] = {}
    for text in good:
        for before, after in pairwise(text):
            behind.setdefault(before, Counter())[after] += 1
    return behind
