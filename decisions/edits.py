"""Edits of a source, as a reply writes them: each finds its text and replaces it."""

import re
from collections.abc import Sequence

from decisions.tags import MAX_SOURCE_BYTES, BadReplyError, Part, fence_body, n_bytes

MAX_EDITS = 100

_SITES = re.compile(r"""\s*sites\s*=\s*["']?([0-9]{1,6})["']?\s*""")


def edited(parent_source: str, edits: Sequence[Part]) -> str:
    """Apply ``edits`` in order, each to the result of the one before.

    Raises:
        BadReplyError: one does not fit, or nothing is changed.
    """
    if len(edits) > MAX_EDITS:
        raise BadReplyError(f"{len(edits)} edits are too many for one step; make it smaller")
    result = parent_source
    for number, edit in enumerate(edits, start=1):
        try:
            result = _apply(result, edit)
        except BadReplyError as e:
            raise BadReplyError(f"edit {number}: {e}") from e
    if result == parent_source:
        raise BadReplyError("the edits change nothing; make <replace> differ from <search>")
    if not result.strip():
        raise BadReplyError("the edits remove the whole source; keep a complete kernel")
    return result


def _apply(source: str, edit: Part) -> str:
    wanted = _sites(edit.attributes)
    search, replace = _search_replace(edit.body)
    if not search:
        raise BadReplyError("<search> is empty; copy the text to change from the source")
    found = source.count(search)
    if found != wanted:
        raise BadReplyError(_mismatch(search, found, wanted))
    grown = n_bytes(source) + found * (n_bytes(replace) - n_bytes(search))
    if grown > MAX_SOURCE_BYTES:
        raise BadReplyError(f"the source grows beyond {MAX_SOURCE_BYTES >> 10} KB; shorten it")
    return source.replace(search, replace)


def _sites(attributes: str) -> int:
    if not attributes.strip():
        return 1
    found = _SITES.fullmatch(attributes)
    if found is None or int(found[1]) == 0:
        raise BadReplyError('its attribute is not sites="N" with N from 1; write sites="1"')
    return int(found[1])


def _search_replace(body: str) -> tuple[str, str]:
    # String methods, not a pattern: a hostile body must not cost quadratic time.
    before, search_tag, rest = body.partition("<search>")
    search, search_end, rest = rest.partition("</search>")
    between, replace_tag, rest = rest.partition("<replace>")
    replace, replace_end, after = rest.partition("</replace>")
    whole = search_tag and search_end and replace_tag and replace_end
    if not whole or (before + between + after).strip():
        raise BadReplyError(
            "it is not one <search>...</search> followed by one <replace>...</replace>; "
            "write one <edit> per change"
        )
    return _block(search), _block(replace)


def _block(text: str) -> str:
    """Text that starts on its own line is that block of lines; any other is taken exactly."""
    fenced = fence_body(text)
    if fenced is not None:
        return fenced.removesuffix("\n")
    if not text.startswith("\n"):
        return text
    lines, _, last = text[1:].rpartition("\n")
    return text[1:] if last.strip() else lines


def _mismatch(search: str, found: int, wanted: int) -> str:
    shown = search.strip().partition("\n")[0][:80]
    remedy = (
        "copy <search> exactly from the source, spacing included"
        if found == 0
        else f'lengthen <search> until it is unique, or write sites="{found}"'
    )
    return f"<search> starting {shown!r} is found at {found} sites, expected {wanted}; {remedy}"
