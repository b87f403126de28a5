"""Let a run finish what is under way and begin nothing new; its process stays and waits."""

from collections.abc import Sequence

from events.vocabulary import OperatorPaused
from scripts.ordering import give, parser
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Pause a run; return 0."""
    args = parser("pause", __doc__).parse_args(argv)
    return give(args.run, lambda order: OperatorPaused(order=order))
