"""A change of a source as edits: lines to find, and what to put there instead."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True)
class Edit:
    """Whole lines, each text to be found exactly once."""

    search: str
    replace: str


def edits(before: str, after: str, normalize: Callable[[str], str]) -> tuple[Edit, ...]:
    """Return edits that turn one source into another, to be made in order.

    Args:
        before: the source to find texts in.
        after: what it becomes, line by line, up to what ``normalize`` removes.
        normalize: makes lines that may stay as they are equal, and lines without code empty.
    """
    lines, made = before.splitlines(), after.splitlines()
    here, there = list(map(normalize, lines)), list(map(normalize, made))
    code = [i for i, text in enumerate(here) if text]
    new = [line for line, text in zip(made, there, strict=True) if text]
    found: list[Edit] = []
    matcher = SequenceMatcher(
        None, list(filter(None, here)), list(filter(None, there)), autojunk=False
    )
    for tag, i, j, m, n in reversed(matcher.get_opcodes()):
        if tag != "equal":
            first, last = _old_lines(code, i, j, len(lines))
            found.append(_unique(lines, first, last, new[m:n]))
            lines[first:last] = new[m:n]
    return tuple(found)


def _old_lines(code: list[int], i: int, j: int, end: int) -> tuple[int, int]:
    """Return the range of lines that lines of code take, with the comments between them."""
    if i < j:
        return code[i], code[j - 1] + 1
    at = code[i] if i < len(code) else end
    return at, at


def _unique(lines: list[str], first: int, last: int, new: list[str]) -> Edit:
    """Return the edit of a range of lines, with as many around it as make it unique."""
    text = "\n" + "\n".join(lines) + "\n"
    for start, stop in _wider(first if new else max(0, first - 1), last, len(lines)):
        search = "\n".join(lines[start:stop])
        if search.strip() and text.count(search) == 1:
            around = (*lines[start:first], *new, *lines[last:stop])
            return Edit(search, "\n".join(around))
    return Edit("\n".join(lines), "\n".join((*lines[:first], *new, *lines[last:])))


def _wider(first: int, last: int, n: int) -> Iterator[tuple[int, int]]:
    while True:
        yield first, last
        if (first, last) == (0, n):
            return
        first, last = max(0, first - 1), last if first else min(n, last + 1)
