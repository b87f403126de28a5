"""Splits a reply into its tags and their texts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_REPLY_BYTES = 1 << 20
MAX_SOURCE_BYTES = 1 << 18
MAX_SENTENCE = 2000
"""Characters of a text that is recorded inline and shown in later prompts."""


@dataclass(frozen=True)
class Part:
    """One tag."""

    tag: str
    attributes: str
    body: str


class BadReplyError(Exception):
    """A rule of the format is broken; the text says what to change."""


def opening(tags: Iterable[str]) -> re.Pattern[str]:
    """Return what finds the beginning of one of ``tags``, or of ``think``.

    A tag named in prose, in backticks, is not an answer.
    """
    return re.compile(rf"(?<!`)<({'|'.join(sorted({*tags, 'think'}))})((?:\s[^<>]*)?)>")


def parts_of(reply: str, opens: re.Pattern[str]) -> list[Part]:
    """Split into top-level tags, in order; a tag inside another one's body is text.

    Raises:
        BadReplyError: the reply is too long or unreadable, or a tag is not closed.
    """
    if n_bytes(reply) > MAX_REPLY_BYTES:
        raise BadReplyError(f"the reply is longer than {MAX_REPLY_BYTES >> 10} KB; shorten it")
    if "\0" in reply:
        raise BadReplyError("the reply contains a NUL character; remove it")
    text = reply.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    parts: list[Part] = []
    position = 0
    while found := opens.search(text, position):
        tag = found[1]
        end = text.find(f"</{tag}>", found.end())
        if end < 0:
            raise BadReplyError(f"<{tag}> is not closed; end it with </{tag}>")
        parts.append(Part(tag, found[2], text[found.end() : end]))
        position = end + len(tag) + 3
    return [part for part in parts if part.tag != "think"]


def sentence(part: Part) -> str:
    """Return its text in one line.

    Raises:
        BadReplyError: it is empty or too long.
    """
    text = " ".join(part.body.split())
    if not text:
        raise BadReplyError(f"<{part.tag}> is empty; write its text")
    if len(text) > MAX_SENTENCE:
        raise BadReplyError(
            f"<{part.tag}> has {len(text)} characters; write at most {MAX_SENTENCE}"
        )
    return text


def source_of(part: Part) -> str:
    """Return a complete source without a Markdown fence around it, or else its leading newline.

    Raises:
        BadReplyError: it is empty or too long.
    """
    fenced = fence_body(part.body)
    source = part.body.removeprefix("\n") if fenced is None else fenced
    check_size(part.tag, source)
    return source


def check_size(tag: str, text: str) -> None:
    """Refuse a text that is empty or too long.

    Raises:
        BadReplyError: it is.
    """
    if not text.strip():
        raise BadReplyError(f"<{tag}> is empty; write the whole {tag}")
    if n_bytes(text) > MAX_SOURCE_BYTES:
        raise BadReplyError(f"<{tag}> is longer than {MAX_SOURCE_BYTES >> 10} KB; shorten it")


def n_bytes(text: str) -> int:
    """Of its UTF-8 form."""
    return len(text.encode("utf-8", "replace"))


def fence_body(text: str) -> str | None:
    """Return what a Markdown fence around all of ``text`` holds, or None if there is none."""
    first, _, rest = text.strip().partition("\n")
    ticks = first[: len(first) - len(first.lstrip("`"))]
    body = rest.removesuffix(ticks)
    if len(ticks) < 3 or "`" in first[len(ticks) :] or body == rest:
        return None
    return body if not body or body.endswith("\n") else None
