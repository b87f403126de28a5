"""Words facts as one sentence each, as prompts show them; audit words them again."""

from collections.abc import Mapping

from decisions.fitting import RESIDUAL
from events.diagnostics import first_error
from events.predicates import spelled
from events.vocabulary import Predicate

_MAX_QUOTE = 300


def bound_figures(figures: Mapping[str, float]) -> dict[str, float]:
    """Add the bound to what the load-only variants measured.

    Args:
        figures: ``<variant>_s`` seconds per launch of each variant, ``weight_bytes``.

    Returns:
        ``figures`` with ``bound_s``, the fastest variant, and ``rate_gb_s`` (1e9 bytes/s).

    Raises:
        ValueError: there is no variant, or no ``weight_bytes``.
    """
    times_s = [value for name, value in figures.items() if name.endswith("_s")]
    if not times_s or "weight_bytes" not in figures:
        raise ValueError(f"a bound needs '<variant>_s' and 'weight_bytes', not {sorted(figures)}")
    bound_s = min(times_s)
    rate_gb_s = figures["weight_bytes"] / bound_s / 1e9
    return {**figures, "bound_s": bound_s, "rate_gb_s": rate_gb_s}


def bound_claim(figures: Mapping[str, float]) -> str:
    """Word the result of `bound_figures`."""
    variants = sorted(n for n in figures if n.endswith("_s") and n not in ("bound_s", "rate_gb_s"))
    fastest = min(variants, key=lambda name: figures[name]).removesuffix("_s")
    return (
        f"Moving the {figures['weight_bytes'] / 1e6:.4g} MB of weights alone takes "
        f"{figures['bound_s'] * 1e3:.4g} ms on this device ({figures['rate_gb_s']:.3g} GB/s, "
        f"load-only variant {fastest}): no version can be faster."
    )


def noise_claim(figures: Mapping[str, float]) -> str:
    """Word what pairs of one version with itself measured.

    Args:
        figures: ``pair_sd_pct`` scale of a pair, ``slot_pct`` effect of running first, both in
            log-percent; ``n_pairs``.

    Raises:
        KeyError: a figure is missing.
    """
    return (
        f"Two runs of one version differ by {figures['pair_sd_pct']:.3g} log-percent within a pair "
        f"(robust scale over {figures['n_pairs']:.0f} pairs); running first changes a time by "
        f"{figures['slot_pct']:+.3g}: a smaller effect needs many pairs to be seen."
    )


def costs_claim(microbenchmark: str, costs: Mapping[str, float]) -> str:
    """Word what `decisions.fitting.costs` has found."""
    things = [name for name in costs if f"{name} high" in costs]
    said = "; ".join(f"{name} {_cost(costs, name)}" for name in things)
    return (
        f"The device takes, says the microbenchmark {microbenchmark}: {said} "
        f"(their sum is off by {costs[RESIDUAL]:.1%})."
    )


def _cost(costs: Mapping[str, float], name: str) -> str:
    cost, high = costs[name], costs[f"{name} high"]
    if not cost:
        return f"under {_time(high)}"
    return f"{_time(cost)} +-{high / cost - 1:.0%}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def rule_claim(predicate: Predicate | None, doubt: str, signature: str, diagnostics: str) -> str:
    """Say what the toolchain refused, and whether sources are refused on it from now on.

    Args:
        predicate: what no source may hold from now on, or None.
        doubt: why there is none.
        signature: of the failure, for diagnostics that say nothing.
        diagnostics: as the toolchain printed them.
    """
    said = refusal(signature, diagnostics)
    if predicate:
        return f"A source that contains {spelled(predicate)} does not build: {said}"
    return f"A build failed with: {said} (no rule: {doubt})"


def refusal(signature: str, diagnostics: str) -> str:
    """What the toolchain said, in one line."""
    return _quote(first_error(diagnostics) or signature)


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTE else line[: _MAX_QUOTE - 3] + "..."
