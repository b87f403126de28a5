"""Take a candidate out of a run, whatever it measures."""

import argparse
from collections.abc import Sequence

from events.vocabulary import CandidateId, CandidateVetoed
from scripts.ordering import give, parser, words
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Veto a candidate; return 0."""
    parse = parser("veto", __doc__)
    parse.add_argument("candidate", type=_candidate, metavar="CANDIDATE", help="such as c42")
    parse.add_argument("--why", type=words, required=True, metavar="TEXT", help="for the record")
    args = parse.parse_args(argv)
    return give(
        args.run,
        lambda order: CandidateVetoed(order=order, candidate=args.candidate, reason=args.why),
    )


def _candidate(text: str) -> CandidateId:
    digits = text.removeprefix("c")
    if not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no candidate; name one such as c42")
    return int(digits)
