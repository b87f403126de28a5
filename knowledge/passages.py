"""Cuts a document into passages, each short enough for a prompt. Pure."""

import re
from collections.abc import Iterator

MAX_PASSAGE = 8_000
"""Characters: some 2,500 tokens, beside a card, facts and the best version."""
_HEADING = re.compile(r"^(?=#{1,6} \S)", re.MULTILINE)
_PARAGRAPH = re.compile(r"(?<=\n)(?=[^\S\n]*\n)")


def passages(text: str, limit: int = MAX_PASSAGE) -> tuple[str, ...]:
    """Cut at headings, or else between paragraphs, or else anywhere; keep all of ``text``.

    Args:
        text: Markdown or plain text.
        limit: characters of a passage at most.

    Returns:
        The passages in order; joined they are ``text``. Neighbours are together while they fit;
        blank ones are not left out.
    """
    return tuple(_packed(_pieces(text, limit), limit))


def _pieces(text: str, limit: int) -> Iterator[str]:
    for section in _HEADING.split(text):
        if len(section) <= limit:
            yield section
            continue
        for paragraph in _PARAGRAPH.split(section):
            yield from (paragraph[i : i + limit] for i in range(0, len(paragraph), limit))


def _packed(pieces: Iterator[str], limit: int) -> Iterator[str]:
    passage: list[str] = []
    room = limit
    for piece in pieces:
        if len(piece) > room:
            yield "".join(passage)
            passage, room = [], limit
        passage.append(piece)
        room -= len(piece)
    if room < limit:
        yield "".join(passage)
