"""Figures as people read them."""

import math
from datetime import UTC, datetime

from decisions.posterior import WIDEST

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
NONE = "–"  # noqa: RUF001


def seconds(value: float | None) -> str:
    """A time with four digits in a fitting unit."""
    if value is None:
        return NONE
    size, name = unit(value)
    return f"{_digits(value / size, 4)} {name}"


def unit(value: float) -> tuple[float, str]:
    """Size and name of a unit that fits a time."""
    return next((u for u in _UNITS if value >= u[0]), _UNITS[-1] if value else _UNITS[0])


def duration(value: float) -> str:
    """A long time in its two largest units."""
    if value < 100:
        return f"{_digits(value, 3)} s"
    parts: list[str] = []
    left = round(value)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        n, left = divmod(left, size)
        if n or parts:
            parts.append(f"{n} {name}")
    return " ".join(parts[:2])


def factor(value: float | None) -> str:
    """A ratio, with enough digits to show a small gain."""
    return NONE if value is None else f"{_digits(value, 4)}×"  # noqa: RUF001


def ratio(value: float | None) -> str:
    """A ratio with three digits."""
    return NONE if value is None else _digits(value, 4)


def amount(value: float) -> str:
    """A number with up to four digits."""
    return f"{value:.4g}"


def effect(value: float | None) -> str:
    """An effect in log-percent with its sign; an end of an interval without a bound is infinite."""
    if value is None:
        return NONE
    size = "∞" if abs(value) >= WIDEST else f"{abs(value):.2f}"
    return f"{'−' if value < 0 else '+'}{size}"  # noqa: RUF001


def speedup(effect_pct: float) -> float:
    """The speed-up that an effect in log-percent stands for."""
    return math.exp(-effect_pct / 100)


def percent(part: float, whole: float) -> str:
    """A share; a share of nothing is not known."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else NONE


def count(value: float, noun: str) -> str:
    """A number with its noun."""
    return f"{value:,.0f} {noun}" + ("" if value == 1 else "s")


def moment(time_ns: int) -> str:
    """A UTC time to the second."""
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def records(seqs: tuple[int, ...] | list[int]) -> str:
    """Record numbers, a run of neighbours as a range."""
    spans: list[list[int]] = []
    for seq in sorted(set(seqs)):
        if spans and seq == spans[-1][1] + 1:
            spans[-1][1] = seq
        else:
            spans.append([seq, seq])
    return ", ".join(f"#{a}" if a == b else f"#{a}–{b}" for a, b in spans) or NONE  # noqa: RUF001


def _digits(value: float, n: int) -> str:
    """Round to ``n`` significant digits, without an exponent where that is readable."""
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{n - 1}g}"
    return f"{value:.{max(0, n - 1 - math.floor(math.log10(abs(value))))}f}"
