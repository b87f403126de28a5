"""A profile as a picture: one lane per engine, the critical path marked, memory below; plain SVG.

A loop has thousands of instructions. Neighbours too narrow to be told apart are drawn as one block,
so the picture stays small.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from targets.profiler.breakdown import Memory, Profile
from targets.profiler.schedule import NOOP

WIDTH: Final = 1200
LEFT: Final = 130
LANE: Final = 34
TOP: Final = 58
N_LANES: Final = 12
N_BLOCKS: Final = 1600
"""Of all lanes together, about: what a reader can still tell apart, and what keeps it small."""
STYLE: Final = (
    "text{font:12px sans-serif;fill:#222}.small{font-size:10px;fill:#555}"
    ".lane{fill:#f1f3f5}.on{fill:#c8442c}.off{fill:#9db8d2}.in{font-size:10px;fill:#fff}"
    ".memory{fill:#cfe3cf;stroke:#4f8a4f;stroke-width:1}.tick{stroke:#bbb;stroke-width:1}"
)


class Block(NamedTuple):
    """One or more operations of a lane that are drawn together."""

    begin: int
    end: int
    busy: int
    critical: int
    """Cycles of those on the critical path."""
    first: str
    n: int


DRAWN = "<!-- a profile, drawn by kernelwright -->"
"""By this a picture of ours is known."""


def svg(profile: Profile) -> str:
    """Return the picture, complete in itself."""
    lanes = [engine.name for engine in profile.engines[:N_LANES]]
    memories = [memory for memory in profile.memories if memory.peak][:N_LANES]
    height = TOP + LANE * (len(lanes) + len(memories)) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        DRAWN,
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        *_head(profile),
    ]
    for place, name in enumerate(lanes):
        parts += _lane(profile, name, TOP + place * LANE, len(lanes))
    for place, memory in enumerate(memories, start=len(lanes)):
        parts += _memory(memory, profile.makespan, TOP + place * LANE)
    parts += [*_axis(profile.makespan, height - 26), "</svg>", ""]
    return "\n".join(parts)


def _head(profile: Profile) -> Iterator[str]:
    title = f"{profile.title}: {profile.makespan:,} static cycles"
    yield f'<text x="10" y="22">{escape(title)}</text>'
    for x, style, what in ((10, "on", "on the critical path"), (170, "off", "hidden behind it")):
        yield f'<rect class="{style}" x="{x}" y="34" width="12" height="12"/>'
        yield f'<text class="small" x="{x + 18}" y="44">{what}</text>'


def _x(cycle: int, makespan: int) -> float:
    return LEFT + (WIDTH - LEFT - 20) * cycle / max(makespan, 1)


def _lane(profile: Profile, name: str, y: int, n_lanes: int) -> Iterator[str]:
    yield f'<text x="10" y="{y + 19}">{escape(name[:18])}</text>'
    left, right = _x(0, 1), _x(1, 1)
    yield f'<rect class="lane" x="{left:g}" y="{y}" width="{right - left:g}" height="{LANE - 6}"/>'
    for block in _blocks(profile, name, profile.makespan * n_lanes // N_BLOCKS):
        begin, end = _x(block.begin, profile.makespan), _x(block.end, profile.makespan)
        style = "on" if 2 * block.critical > block.busy else "off"
        more = f" and {block.n - 1:,} more" if block.n > 1 else ""
        said = escape(f"{block.first}{more}: {block.begin:,} to {block.end:,}")
        width = max(end - begin, 0.4)
        yield (
            f'<rect class="{style}" x="{begin:.1f}" y="{y}" width="{width:.1f}" '
            f'height="{LANE - 6}"><title>{said}</title></rect>'
        )
        n_letters = int(width / 6.5)
        if n_letters > 2:
            label = escape(block.first[:n_letters])
            yield f'<text class="in" x="{begin + 3:.1f}" y="{y + 18}">{label}</text>'


def _blocks(profile: Profile, name: str, narrow: int) -> list[Block]:
    """The operations of a lane; those shorter than ``narrow`` join a short neighbour."""
    critical = {wait.operation for wait in profile.path}
    blocks: list[Block] = []
    for number, o in enumerate(profile.operations):
        if name not in o.contexts or name == NOOP or not o.cycles:
            continue
        on_path = o.cycles if number in critical else 0
        last = blocks[-1] if blocks else None
        if last and o.end - last.begin < narrow:
            blocks[-1] = Block(
                last.begin, max(last.end, o.end), last.busy + o.cycles, last.critical + on_path,
                last.first, last.n + 1,
            )  # fmt: skip
        else:
            blocks.append(Block(o.begin, o.end, o.cycles, on_path, o.name[:40], 1))
    return blocks


def _memory(memory: Memory, makespan: int, y: int) -> Iterator[str]:
    yield f'<text x="10" y="{y + 13}">{escape(memory.name[:18])}</text>'
    yield f'<text class="small" x="10" y="{y + 26}">{memory.peak:,} bytes</text>'
    foot, full = y + LANE - 6, LANE - 8
    points = [f"{_x(0, 1):.1f},{foot}"]
    level = 0.0
    for cycle, alive in _thinned(memory.levels, max(1, makespan // 500)):
        x, height = _x(cycle, makespan), foot - full * alive / memory.peak
        points += [f"{x:.1f},{foot - level:.1f}", f"{x:.1f},{height:.1f}"]
        level = foot - height
    points.append(f"{_x(makespan, makespan):.1f},{foot}")
    yield f'<polygon class="memory" points="{" ".join(points)}"/>'


def _thinned(levels: Sequence[tuple[int, int]], step: int) -> Iterator[tuple[int, int]]:
    """The highest level of each stretch of ``step`` cycles."""
    best: tuple[int, int] | None = None
    for cycle, alive in levels:
        if best and cycle // step == best[0] // step:
            best = best[0], max(best[1], alive)
        else:
            if best:
                yield best
            best = cycle, alive
    if best:
        yield best


def _axis(makespan: int, y: int) -> Iterator[str]:
    for tenth in range(11):
        cycle = makespan * tenth // 10
        x = _x(cycle, makespan)
        anchor = "end" if tenth == 10 else "middle"
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4}" y2="{y}"/>'
        place = f'x="{x:.1f}" y="{y + 14}" text-anchor="{anchor}"'
        yield f'<text class="small" {place}>{cycle:,}</text>'
