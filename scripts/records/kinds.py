"""The kinds of events and of blobs, as the command line knows them."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import get_args

from events.vocabulary import BlobKind, Decision, Mark, Order, Reply, Request
from scripts.runs import UsageError

PRUNABLE: tuple[BlobKind, ...] = tuple(k for k in get_args(BlobKind) if k != "pruned_list")
MODELS = {
    model.model_fields["kind"].default: model
    for sort in (Mark, Order, Request, Reply, Decision)
    for model in get_args(sort)
}
"""The type of each kind of event."""


def check_known(kinds: Iterable[str]) -> None:
    """Refuse kinds of events that there are not.

    Raises:
        UsageError: one of them is unknown; the nearest one is named.
    """
    for kind in kinds:
        if kind not in MODELS:
            near = get_close_matches(kind, MODELS, n=1, cutoff=0.0)
            raise UsageError(f"no event is a {kind!r}; the nearest kind is {near[0]!r}")
