"""A decision that is due, with the records that it rests on."""

from typing import NamedTuple

from events.vocabulary import Decision, Request


class Due(NamedTuple):
    """What the director appends next."""

    event: Decision | Request
    because: tuple[int, ...]
