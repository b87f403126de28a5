"""Which version of which rule was in force in a stretch of a log, and whether it is at hand."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from decisions.evidence import READINGS, Reading
from decisions.plan import RULES, Rule
from events.vocabulary import Decision, Request

DECIDED = tuple(e.model_fields["kind"].default for e in (*get_args(Decision), *get_args(Request)))
FORMER: tuple[Rule | Reading, ...] = ()
"""Rules of earlier versions, kept so that what they decided can be derived again."""
IN_FORCE: Mapping[str, int] = {rule.name: rule.version for rule in (*RULES, *READINGS)}
"""What a run that is started or resumed by this version records."""


class Policy(NamedTuple):
    """The rules of one stretch of a log."""

    rules: tuple[Rule, ...]
    """Those at hand, in the order they were asked."""
    readings: tuple[Reading, ...]
    missing: Mapping[str, str]
    """Why records of a kind cannot be derived again unless a rule at hand says the same."""


def policy(recorded: Mapping[str, int], former: Sequence[Rule | Reading] = FORMER) -> Policy:
    """Find the rules that a run records, as far as this version has them.

    Args:
        recorded: versions by name, in the order they were asked; empty: nobody knows.
        former: rules of earlier versions.
    """
    current = (*RULES, *READINGS)
    at_hand = {(rule.name, rule.version): rule for rule in (*former, *current)}
    kinds = {rule.name: rule.kinds for rule in (*former, *current)}
    read = {kind for rule in READINGS if rule.name not in recorded for kind in rule.kinds}
    missing = dict.fromkeys(read, "no rule for reading it is recorded")
    for name, version in recorded.items():
        if (name, version) not in at_hand:
            reason = f"rule {name} version {version}"
            missing |= dict.fromkeys(kinds.get(name, DECIDED), reason)
    if not recorded:
        missing |= dict.fromkeys(DECIDED, "no rules are recorded")
    found = [at_hand[key] for key in recorded.items() if key in at_hand]
    return Policy(
        rules=tuple(rule for rule in found if isinstance(rule, Rule)),
        readings=tuple(rule for rule in found if isinstance(rule, Reading)),
        missing=missing,
    )
