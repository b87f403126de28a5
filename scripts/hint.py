"""Say something about a kernel to the roles: its next prompts show it."""

from collections.abc import Sequence

from events.vocabulary import OperatorHinted
from scripts.ordering import give, parser, words
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Give a hint; return 0."""
    parse = parser("hint", __doc__)
    parse.add_argument("kernel", metavar="KERNEL", help="the kernel that it is about")
    parse.add_argument("text", type=words, metavar="TEXT", help="one or two sentences")
    args = parse.parse_args(argv)
    return give(
        args.run, lambda order: OperatorHinted(order=order, kernel=args.kernel, text=args.text)
    )
