"""Stop a run at its next safe point and end its process; `kernelwright run` goes on with it."""

from collections.abc import Sequence

from events.vocabulary import RunInterrupted
from scripts.ordering import give, parser
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Stop a run; return 0."""
    args = parser("stop", __doc__).parse_args(argv)
    reason = "stopped by the operator"
    return give(args.run, lambda order: RunInterrupted(reason=reason, order=order))
