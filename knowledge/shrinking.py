"""Delta debugging: from a source that fails to a small one that still fails in the same way."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from events.predicates import Token, tokens, words

Part = frozenset[int]
"""Lines that can only be left out together, by their index."""
N_GUESSES: Final = 3
"""Lines with the offending text that are taken for the wrong one."""
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}


def shrink(source: str, text: str, fails: Callable[[str], bool]) -> str:
    """Leave out lines, many at once at first, as long as the rest fails in the same way.

    Args:
        source: in any language whose brackets pair up.
        text: of ``source``, that is said to be wrong; what it needs is tried first.
        fails: whether a source fails as ``source`` does; one that has had enough says no.

    Returns:
        Some of the lines of ``source``, in their order. If ``fails`` never had enough, it fails,
        and no line (or pair of lines with a bracket) can be left out on its own.
    """
    lines = source.splitlines(keepends=True)
    whole = parts(lines)
    guesses = (_needed(whole, lines, at) for at in islice(_places(text, lines), N_GUESSES))
    guess = next((kept for kept in guesses if fails(_joined(kept, lines))), None)
    kept = guess or _shortest_begin(whole, lines, fails)
    size = max(1, len(kept) // 4)
    while True:
        smaller = _without_runs(kept, size, lines, fails)
        if len(smaller) == len(kept) and size == 1:
            return _joined(kept, lines)
        size = max(1, min(size // 2, len(smaller) // 2))
        kept = smaller


def parts(lines: Sequence[str]) -> list[Part]:
    """Group lines: a line that opens a bracket belongs to the one that closes it."""
    group = list(range(len(lines)))
    opened: list[tuple[str, int]] = []
    for i, line in enumerate(lines):
        for token in tokens(line):
            if token.text in _CLOSERS.values():
                opened.append((token.text, i))
            elif opened and _CLOSERS.get(token.text) == opened[-1][0]:
                old, new = group[i], group[opened.pop()[1]]
                group = [new if g == old else g for g in group]
    members: dict[int, set[int]] = {}
    for i, g in enumerate(group):
        members.setdefault(g, set()).add(i)
    return [frozenset(part) for part in members.values()]


def _places(text: str, lines: Sequence[str]) -> Iterator[int]:
    """The lines with a text: what stands before the one that is wrong is right."""
    said = words(text)
    for i, line in enumerate(map(words, lines)):
        if said and any(line[k : k + len(said)] == said for k in range(len(line))):
            yield i


def _needed(whole: Sequence[Part], lines: Sequence[str], at: int) -> list[Part]:
    """Guess what a line needs: the lines where its words stand first, and so on.

    The lines before the first blank one always stay, as do the brackets around what is needed; one
    that would be empty keeps its first line.
    """
    texts = [words(line) for line in lines]
    first = {word: i for i in reversed(range(len(lines))) for word in texts[i]}
    wanted = {at, *takewhile(lambda i: lines[i].strip(), range(len(lines)))}
    needed: set[int] = set()
    while wanted:
        new = [part for part in whole if part & wanted]
        needed.update(*new)
        around = {min(p) for p in whole for part in new if min(p) < min(part) < max(p)}
        inside = {min(part) + 1 for part in new if len(part) > 1}
        named = {first[w] for part in new for i in part for w in texts[i] if Token(w, 0).is_word}
        wanted = (around | inside | named) - needed
    return [part for part in whole if part <= needed]


def _shortest_begin(
    whole: list[Part], lines: Sequence[str], fails: Callable[[str], bool]
) -> list[Part]:
    """Halve what is behind the error away; a compiler that stops at it never reads that."""
    low, high = 0, len(whole)
    while low < high:
        middle = (low + high) // 2
        if fails(_joined(whole[:middle], lines)):
            high = middle
        else:
            low = middle + 1
    return whole[:high]


def _without_runs(
    kept: list[Part], size: int, lines: Sequence[str], fails: Callable[[str], bool]
) -> list[Part]:
    """Try to leave out each run of ``size`` parts, last first: uses go before definitions."""
    for end in range(len(kept), 0, -size):
        fewer = kept[: max(0, end - size)] + kept[end:]
        if fails(_joined(fewer, lines)):
            kept = fewer
    return kept


def _joined(kept: Sequence[Part], lines: Sequence[str]) -> str:
    return "".join(lines[i] for i in sorted(set().union(*kept)))
