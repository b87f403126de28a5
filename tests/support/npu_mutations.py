"""Single mutations of an NPU source: the small changes that a catalogue of moves would try.

They are made in the text, line by line; most are illegal, and the compiler says so.
"""

import re
from collections.abc import Callable, Iterator

Mutation = tuple[str, str]
"""What was changed, and the new source."""


def mutations(source: str) -> Iterator[Mutation]:
    """Yield every small change of ``source``, legal or not, in the order of its lines."""
    lines = source.splitlines()
    for k, line in enumerate(lines):
        for new in _changes(line):
            if new != line:
                what = f"{line.strip()} -> {new.strip()}"
                yield what, "\n".join([*lines[:k], new, *lines[k + 1 :]])
        if k and _movable(lines[k - 1]) and _movable(line) and not _share_hbm(lines[k - 1], line):
            swapped = [*lines[: k - 1], line, lines[k - 1], *lines[k + 1 :]]
            yield f"{line.strip()} first", "\n".join(swapped)


def _changes(line: str) -> Iterator[str]:
    """Yield other versions of one line."""
    yield from _numbers(line, r"in 0\.\.(\d+)", lambda n: (n * 2, n // 2, n * 3, n // 3, n * 5))
    yield from _numbers(line, r"buffers (\d+)", lambda n: (n - 1, n + 1))
    yield from _numbers(line, r"block (\d+)", lambda n: (n // 2, n * 2, n * 3))
    yield from _numbers(line, r"lanes (\d+)", lambda n: (n // 2, n // 4))
    yield from _numbers(line, r"pieces (\d+)", lambda n: (n + 1,))
    yield re.sub(r" block \d+", "", line)
    yield line.replace(" keep", "")
    yield re.sub(r"= main ", "= sub ", line)
    yield re.sub(r"= sub ", "= main ", line)
    if re.match(r"\s*load .*\bto \w+$", line):
        yield from (f"{line} block {n}" for n in (256, 512))
    if line.startswith("place "):
        yield from _placements(line)


def _numbers(line: str, pattern: str, others: Callable[[int], tuple[int, ...]]) -> Iterator[str]:
    found = re.search(pattern, line)
    if found:
        for n in others(int(found[1])):
            yield line[: found.start(1)] + str(n) + line[found.end(1) :]


def _placements(line: str) -> Iterator[str]:
    """Move a factor of two, or four, between neighbours."""
    head, _, tail = line.partition("slices ")
    factors = [(f.split(":")[0], int(f.split(":")[1])) for f in re.findall(r"\w+:\d+", tail)]
    for k in range(len(factors) - 1):
        (a, n), (b, m) = factors[k : k + 2]
        for x, y in ((n * 2, m // 2), (n // 2, m * 2), (n * 4, m // 4), (n // 4, m * 4)):
            if x and y:
                new = [*factors[:k], (a, x), (b, y), *factors[k + 2 :]]
                yield head + "slices " + " ".join(f"{f}:{c}" for f, c in new)


def _movable(line: str) -> bool:
    return bool(re.match(r"\s*(load |store |\w+ = )", line))


def _share_hbm(a: str, b: str) -> bool:
    """Whether one stores what the other loads, so that their order has a meaning."""
    stores = re.findall(r"store \w+ to (\w+)", a + "\n" + b)
    return any(re.search(rf"load .*\b{name}\b", a + "\n" + b) for name in stores)
