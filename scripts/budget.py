"""Change what a run may spend from here on: +3 is added to a limit, 3 replaces it."""

import argparse
import math
from collections.abc import Mapping, Sequence

from events.vocabulary import BudgetChanged, LimitChange, Resource
from scripts.ordering import give, parser
from scripts.runs import UsageError, without_traceback

HOUR_S = 3600.0
OPTIONS: Mapping[str, tuple[Resource, float]] = {
    "wall_hours": ("wall_s", HOUR_S),
    "device_hours": ("device_s", HOUR_S),
    "model_calls": ("model_calls", 1.0),
    "tokens": ("tokens", 1.0),
    "cost_usd": ("cost_usd", 1.0),
}
"""What each option limits, and how much of it one unit is."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Change limits; return 0."""
    parse = parser("budget", __doc__)
    for option in OPTIONS:
        parse.add_argument(f"--{option.replace('_', '-')}", type=_amount, metavar="[+]N")
    args = parse.parse_args(argv)
    given = {option: getattr(args, option) for option in OPTIONS}
    changes = tuple(
        LimitChange(resource=resource, amount=unit * given[option][0], is_relative=given[option][1])
        for option, (resource, unit) in OPTIONS.items()
        if given[option] is not None
    )
    if not changes:
        raise UsageError(f"name a limit: --{', --'.join(OPTIONS).replace('_', '-')}")
    return give(args.run, lambda order: BudgetChanged(order=order, changes=changes))


def _amount(text: str) -> tuple[float, bool]:
    """A number, and whether it has a sign and so is relative to the limit so far."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount):
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 3, +3 or -0.5")
    return amount, text.lstrip()[0] in "+-"
