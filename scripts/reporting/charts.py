"""Charts as SVG text: pure functions from figures to markup, styled by the page's sheet."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 74, 14, 14, 46
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "1 4")
"""One per colour, so that lines differ without colour too."""
N_COLOURS = 6
_SPLITS = ((1, 10), (1, 3, 10), (1, 2, 5, 10), (1, 1.5, 2, 3, 5, 7, 10))


@dataclass(frozen=True)
class Mark:
    """One reading and what to say of it."""

    x: float
    y: float
    note: str = ""
    span: tuple[float, float] | None = None
    """Ends of the interval that the reading may lie in."""


@dataclass(frozen=True)
class Series:
    """The readings of one thing, in the order of x."""

    name: str
    colour: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Axis:
    """A range of values, where its ticks are and what they say."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False

    def at(self, value: float) -> float:
        """Position of ``value`` between 0 and 1."""
        if self.is_log:
            value, low, high = math.log(value), math.log(self.low), math.log(self.high)
        else:
            low, high = self.low, self.high
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def scaled(self, factor: float) -> "Axis":
        """The same axis over values that are larger by ``factor``."""
        ticks = tuple((value * factor, text) for value, text in self.ticks)
        return Axis(self.label, self.low * factor, self.high * factor, ticks, self.is_log)


def linear_axis(label: str, values: Sequence[float], show: Callable[[float], str]) -> Axis:
    """An axis over ``values`` whose ends are round numbers."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low <= 1e-9 * abs(high):
        margin = 0.1 * abs(high) or 1.0
        low, high = low - margin, high + margin
    step = _round_step((high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((i * step, show(i * step)) for i in range(first, last + 1))
    return Axis(label, first * step, last * step, ticks)


def running_axis(label: str, end: float, show: Callable[[float], str], least: float = 0) -> Axis:
    """An axis from 0 to ``end`` exactly, with ticks ``least`` or more apart."""
    high = end if end > 0 else 1.0
    step = max(_round_step(high / 6), least)
    n = math.floor(high / step + 1e-9)
    return Axis(label, 0.0, high, tuple((i * step, show(i * step)) for i in range(n + 1)))


def log_axis(label: str, values: Sequence[float], show: Callable[[float], str]) -> Axis:
    """A logarithmic axis over ``values``, all above 0, with a little room at both ends."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    room = max(1.06, (high / low) ** 0.06)
    low, high = low / room, high * room
    high = next(iter(_log_ticks(high, 1.35 * high, 1)), high)
    return Axis(label, low, high, tuple((v, show(v)) for v in _log_ticks(low, high)), True)


def steps(title: str, desc: str, series: Sequence[Series], x: Axis, y: Axis) -> Markup:
    """Lines that keep each value until the next mark, from a dashed line at 1."""
    body = [_level(y, 1.0)]
    for one in series:
        path = _step_path(one.marks, x, y)
        dash = DASHES[one.colour % N_COLOURS]
        body.append(
            f'<path class="line {_colour(one)}" d="{path}" stroke-dasharray="{dash}">'
            f"<title>{escape(one.name)}</title></path>"
        )
        body += [_circle(mark, one, x, y) for mark in one.marks if mark.note]
    return _frame(title, desc, x, y, body)


def dots(
    title: str,
    desc: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    *,
    level: float | None = None,
    joined: bool = False,
) -> Markup:
    """Readings as dots, with a line at ``level``, and joined by a line if asked."""
    body = []
    if level is not None:
        body.append(_level(y, level))
    for one in series:
        places = [(_x(x, mark.x), _y(y, mark.y)) for mark in one.marks]
        if joined and places:
            path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
            body.append(f'<path class="line thin {_colour(one)}" d="{path}"/>')
        points = "".join(f"M{px:.1f} {py:.1f}h0" for px, py in places)
        body.append(
            f'<path class="points {_colour(one)}" d="{points}">'
            f"<title>{escape(one.name)}</title></path>"
        )
    return _frame(title, desc, x, y, body)


def against(title: str, desc: str, series: Sequence[Series], axis: Axis, label: str) -> Markup:
    """Readings over what they should be, both on ``axis``, with a line where the two are equal.

    Args:
        title: of the chart.
        desc: what it shows, for those who cannot see it.
        series: x is what should be, y what was read, within its `span`.
        axis: labelled as x.
        label: of y.
    """
    y = replace(axis, label=label)
    corners = f"M{_x(axis, axis.low):.1f} {_y(y, y.low):.1f}L{_x(axis, axis.high):.1f} {TOP}"
    body = [f'<path class="level" d="{corners}"/>']
    for one in series:
        body += [_span(mark, one, axis, y) for mark in one.marks if mark.span]
        body += [_circle(mark, one, axis, y) for mark in one.marks]
    return _frame(title, desc, axis, y, body)


def bars(title: str, rows: Sequence[tuple[str, float, str, int]]) -> Markup:
    """Horizontal bars from 0, each a label, a value, its words and a colour."""
    longest = max((value for _, value, _, _ in rows), default=0.0) or 1.0
    body = []
    for i, (label, value, words, colour) in enumerate(rows):
        top, length = 4 + 26 * i, max(1.5, 190 * value / longest)
        body.append(
            f'<text class="tick" x="64" y="{top + 14}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="bar c{colour}" x="72" y="{top}" width="{length:.1f}" height="18"/>'
            f'<text class="tick" x="{72 + length + 6:.1f}" y="{top + 14}">{escape(words)}</text>'
        )
    return _svg(title, "", 360, 4 + 26 * len(rows), body)


def _frame(title: str, desc: str, x: Axis, y: Axis, body: Sequence[str]) -> Markup:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = []
    for value, text in y.ticks:
        at = _y(y, value)
        grid.append(
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="tick" x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">'
            f"{escape(text)}</text>"
        )
    for value, text in x.ticks:
        at = _x(x, value)
        grid.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}"/>'
            f'<text class="tick" x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
    middle = (LEFT + right) / 2
    grid.append(
        f'<line class="mark" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x.label)}</text>"
        f'<text class="axis" x="0" y="0" text-anchor="middle" '
        f'transform="translate(13 {(TOP + bottom) / 2}) rotate(-90)">{escape(y.label)}</text>'
    )
    return _svg(title, desc, WIDTH, HEIGHT, [*grid, *body])


def _svg(title: str, desc: str, width: int, height: int, body: Sequence[str]) -> Markup:
    described = f"<desc>{escape(desc)}</desc>" if desc else ""
    return Markup(  # every text in it was escaped where it was put in
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{described}{''.join(body)}</svg>"
    )


def _step_path(marks: Sequence[Mark], x: Axis, y: Axis) -> str:
    if not marks:
        return ""
    parts = [f"M{_x(x, marks[0].x):.1f} {_y(y, marks[0].y):.1f}"]
    parts += [f"H{_x(x, mark.x):.1f}V{_y(y, mark.y):.1f}" for mark in marks[1:]]
    return "".join(parts)


def _circle(mark: Mark, one: Series, x: Axis, y: Axis) -> str:
    return (
        f'<circle class="{_colour(one)}" cx="{_x(x, mark.x):.1f}" cy="{_y(y, mark.y):.1f}" r="4">'
        f"<title>{escape(mark.note)}</title></circle>"
    )


def _span(mark: Mark, one: Series, x: Axis, y: Axis) -> str:
    low, high = mark.span or (mark.y, mark.y)
    path = f"M{_x(x, mark.x):.1f} {_y(y, low):.1f}V{_y(y, high):.1f}"
    return f'<path class="line thin {_colour(one)}" d="{path}"/>'


def _level(y: Axis, value: float) -> str:
    at = _y(y, value)
    return f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'


def _colour(one: Series) -> str:
    return f"c{one.colour % N_COLOURS}"


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next((m * size for m in (1, 2, 2.5, 5) if m * size >= step), 10 * size)


def _log_ticks(low: float, high: float, least: int = 4) -> list[float]:
    """Round values from ``low`` to ``high``: ``least`` or more, and as few as that takes."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for split in _SPLITS:
        values = sorted({m * 10.0**e for e in range(first, last + 1) for m in split})
        inside = [value for value in values if low <= value <= high]
        if len(inside) >= least:
            return inside[:: math.ceil(len(inside) / 8)]
    step = _round_step((high - low) / 5)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
