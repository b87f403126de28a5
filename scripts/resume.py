"""Let a paused run go on."""

from collections.abc import Sequence

from events.vocabulary import OperatorContinued
from scripts.ordering import give, parser
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Let a run go on; return 0."""
    args = parser("resume", __doc__).parse_args(argv)
    return give(args.run, lambda order: OperatorContinued(order=order))
