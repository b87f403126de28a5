"""How the fields of an event were stored in earlier versions, and how they become today's.

A kind begins at version 1. Whoever changes the fields of a kind, or of a value in it, adds one
upcaster to the end of the kind's chain: that is its next version.
"""

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]
"""Of one event, as the log holds them: plain values, dictionaries, and tuples."""
Chains = Mapping[str, tuple[Callable[[Fields], Fields], ...]]
"""Per kind: the first upcaster takes fields of version 1 to version 2, and so on."""

UPCASTERS: Chains = {}


def version(kind: str, chains: Chains = UPCASTERS) -> int:
    """The version in which events of a kind are written today."""
    return 1 + len(chains.get(kind, ()))


def upcast(fields: Fields, stored: int, chains: Chains = UPCASTERS) -> Fields:
    """Return the fields that an event stored in version ``stored`` has today.

    Raises:
        ValueError: there is no such version yet.
    """
    kind = fields["kind"]
    today = version(kind, chains)
    if not 1 <= stored <= today:
        raise ValueError(f"event kind '{kind}' in version {stored}, known up to version {today}")
    for step in chains.get(kind, ())[stored - 1 :]:
        fields = step(fields)
    return fields
