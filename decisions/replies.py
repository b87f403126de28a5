"""Reads a role's reply: tagged text in, a value or an exact complaint out. Never raises."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from events.vocabulary import (
    Analysis,
    Complaint,
    DesignPlan,
    Designs,
    Draft,
    Nothing,
    Review,
    Sha,
    Task,
)

MAX_REPLY_BYTES = 1 << 20
MAX_SOURCE_BYTES = 1 << 18
MAX_SENTENCE = 2000
"""Characters of a text that is recorded inline and shown in later prompts."""
MAX_EDITS = 100
MAX_CITES = 50
MAX_DESIGNS = 8

_PROPOSAL = frozenset({"hypothesis", "speedup", "cites", "move"})
_TAKES: Mapping[str, frozenset[str]] = {
    "design": frozenset({"design"}),
    "implement": _PROPOSAL | {"source"},
    "step": _PROPOSAL | {"edit"},
    "analyse": frozenset({"bottleneck", "advice"}),
    "review": frozenset({"review", "reason"}),
}
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "design": ("design",),
    "implement": ("hypothesis", "source"),
    "step": ("hypothesis", "edit"),
    "analyse": ("bottleneck", "advice"),
    "review": ("review", "reason"),
}
_DESIGN_TAKES = _PROPOSAL | {"bottleneck", "bytes", "plan"}
_DESIGN_NEEDS = ("hypothesis", "bottleneck", "bytes", "plan")
_MOVE_NEEDS = ("hypothesis", "plan")
_REPEATED = frozenset({"design", "edit"})
_TAGS = sorted(_DESIGN_TAKES.union(*_TAKES.values()) | {"nothing", "think"})
# A tag named in prose, in backticks, is not an answer.
_OPEN = re.compile(rf"(?<!`)<({'|'.join(_TAGS)})((?:\s[^<>]*)?)>")

_SITES = re.compile(r"""\s*sites\s*=\s*["']?([0-9]{1,6})["']?\s*""")


@dataclass(frozen=True)
class PlanText:
    """A whole-kernel design in words."""

    hypothesis: str
    expected_speedup: float | None
    bottleneck: str
    bytes_moved: float | None
    plan: str
    move: str
    cites: tuple[str, ...]

    def design_plan(self) -> DesignPlan:
        """As the record has it; the plan itself is a blob."""
        return DesignPlan(
            hypothesis=self.hypothesis,
            expected_speedup=self.expected_speedup,
            bottleneck=self.bottleneck,
            bytes_moved=self.bytes_moved,
            plan=_sha(self.plan),
            move=self.move,
            cites=self.cites,
        )


@dataclass(frozen=True)
class PlanTexts:
    """The designs of one reply; no two have the same plan."""

    plans: tuple[PlanText, ...]

    def designs(self) -> Designs:
        """As the record has them."""
        return Designs(designs=tuple(plan.design_plan() for plan in self.plans))


@dataclass(frozen=True)
class SourceText:
    """A complete source, written whole or made by edits of the parent's."""

    hypothesis: str
    expected_speedup: float | None
    source: str
    move: str
    cites: tuple[str, ...]

    def draft(self, normalized: Sha) -> Draft:
        """As the record has it, with the hash of its normal form; the source itself is a blob."""
        return Draft(
            hypothesis=self.hypothesis,
            expected_speedup=self.expected_speedup,
            source=_sha(self.source),
            normalized=normalized,
            move=self.move,
            cites=self.cites,
        )


def _sha(text: str) -> Sha:
    return hashlib.sha256(text.encode()).hexdigest()


Parsed = PlanTexts | SourceText | Analysis | Review | Complaint | Nothing


@dataclass(frozen=True)
class _Part:
    tag: str
    attributes: str
    body: str


class _BadReplyError(Exception):
    """A rule of the format is broken; caught in `parse`, the only caller."""


def parse(task: Task, reply: str, parent_source: str) -> Parsed:
    """Read ``reply`` as an answer to ``task``.

    Args:
        task: decides which tags are taken and which are needed.
        reply: the whole reply; text outside the tags and in ``<think>`` is ignored.
        parent_source: what the edits of a ``step`` are applied to.

    Returns:
        The answer, or a `Complaint` whose reason tells the author what to change.
    """
    try:
        return _read(task, _parts(reply), parent_source)
    except _BadReplyError as e:
        return Complaint(reason=str(e))


def _parts(reply: str) -> list[_Part]:
    """Split into top-level tags, in order; a tag inside another one's body is text."""
    if _n_bytes(reply) > MAX_REPLY_BYTES:
        raise _BadReplyError(f"the reply is longer than {MAX_REPLY_BYTES >> 10} KB; shorten it")
    if "\0" in reply:
        raise _BadReplyError("the reply contains a NUL character; remove it")
    text = reply.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    parts: list[_Part] = []
    position = 0
    while found := _OPEN.search(text, position):
        tag = found[1]
        end = text.find(f"</{tag}>", found.end())
        if end < 0:
            raise _BadReplyError(f"<{tag}> is not closed; end it with </{tag}>")
        parts.append(_Part(tag, found[2], text[found.end() : end]))
        position = end + len(tag) + 3
    return [part for part in parts if part.tag != "think"]


def _read(task: Task, parts: list[_Part], parent_source: str) -> Parsed:
    tags = [part.tag for part in parts]
    if tags == ["nothing"]:
        return Nothing(reason=_sentence(parts[0]))
    _check_tags(f"a reply to {task!r}", tags, _TAKES[task], _NEEDS[task])
    texts = {part.tag: part for part in parts}
    match task:
        case "analyse":
            return Analysis(
                bottleneck=_sentence(texts["bottleneck"]), advice=_sentence(texts["advice"])
            )
        case "review":
            return Review(go=_go(texts["review"]), reason=_sentence(texts["reason"]))
        case "design":
            return _plans([part for part in parts if part.tag == "design"])
        case "implement":
            source = _unwrapped(texts["source"].body)
            _check_size("source", source)
            return SourceText(*_claim(texts), source, *_origin(texts))
        case "step":
            source = _edited(parent_source, [part for part in parts if part.tag == "edit"])
            return SourceText(*_claim(texts), source, *_origin(texts))


def _plans(designs: list[_Part]) -> PlanTexts:
    if len(designs) > MAX_DESIGNS:
        raise _BadReplyError(f"{len(designs)} designs are too many; send the best {MAX_DESIGNS}")
    plans: list[PlanText] = []
    for number, design in enumerate(designs, start=1):
        try:
            plans.append(_plan(design))
        except _BadReplyError as e:
            raise _BadReplyError(f"design {number}: {e}") from e
        if plans[-1].plan in [plan.plan for plan in plans[:-1]]:
            raise _BadReplyError(f"design {number}: its plan is that of an earlier one; change it")
    return PlanTexts(tuple(plans))


def _plan(design: _Part) -> PlanText:
    parts = _parts(design.body)
    tags = [part.tag for part in parts]
    needs = _MOVE_NEEDS if "move" in tags else _DESIGN_NEEDS
    _check_tags("a <design>", tags, _DESIGN_TAKES, needs)
    texts = {part.tag: part for part in parts}
    plan = texts["plan"].body.strip()
    _check_size("plan", plan)
    return PlanText(
        *_claim(texts),
        _sentence(texts["bottleneck"]) if "bottleneck" in texts else "",
        _positive(texts["bytes"]) if "bytes" in texts else None,
        plan,
        *_origin(texts),
    )


def _check_tags(what: str, tags: list[str], takes: frozenset[str], needs: tuple[str, ...]) -> None:
    if "nothing" in tags:
        raise _BadReplyError("<nothing> stands alone; send it or an answer, not both")
    for tag in tags:
        if tag not in takes:
            known = ", ".join(f"<{t}>" for t in sorted(takes))
            raise _BadReplyError(f"{what} has no <{tag}>; it takes {known}")
        if tag not in _REPEATED and tags.count(tag) > 1:
            raise _BadReplyError(f"<{tag}> appears {tags.count(tag)} times; send it once")
    for tag in needs:
        if tag not in tags:
            raise _BadReplyError(
                f"<{tag}> is missing; add <{tag}>...</{tag}>, or answer <nothing>why</nothing>"
            )


def _claim(texts: Mapping[str, _Part]) -> tuple[str, float | None]:
    speedup = texts.get("speedup")
    return _sentence(texts["hypothesis"]), None if speedup is None else _positive(speedup)


def _origin(texts: Mapping[str, _Part]) -> tuple[str, tuple[str, ...]]:
    move = texts.get("move")
    return "" if move is None else _sentence(move), _cites(texts.get("cites"))


def _sentence(part: _Part) -> str:
    text = " ".join(part.body.split())
    if not text:
        raise _BadReplyError(f"<{part.tag}> is empty; write its text")
    if len(text) > MAX_SENTENCE:
        raise _BadReplyError(
            f"<{part.tag}> has {len(text)} characters; write at most {MAX_SENTENCE}"
        )
    return text


def _positive(part: _Part) -> float:
    try:
        value = float(part.body.strip().rstrip("x"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise _BadReplyError(
            f"<{part.tag}> is not a positive number; write one such as 1.3, without a unit"
        )
    return value


def _cites(part: _Part | None) -> tuple[str, ...]:
    if part is None:
        return ()
    ids = tuple(dict.fromkeys(part.body.replace(",", " ").split()))
    if len(ids) > MAX_CITES:
        raise _BadReplyError(f"<cites> has {len(ids)} ids; name at most {MAX_CITES}")
    for cited in ids:
        if not re.fullmatch(r"[fh][0-9]{1,9}", cited):
            raise _BadReplyError(
                f"<cites> has {cited[:40]!r}; list ids such as f3 or h1, or leave the tag out"
            )
    return ids


def _go(part: _Part) -> bool:
    word = part.body.strip().lower()
    if word not in {"go", "stop"}:
        raise _BadReplyError("<review> is neither 'go' nor 'stop'; write one of the two")
    return word == "go"


def _check_size(tag: str, text: str) -> None:
    if not text.strip():
        raise _BadReplyError(f"<{tag}> is empty; write the whole {tag}")
    if _n_bytes(text) > MAX_SOURCE_BYTES:
        raise _BadReplyError(f"<{tag}> is longer than {MAX_SOURCE_BYTES >> 10} KB; shorten it")


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


# ---- edits ---------------------------------------------------------------------------------


def _edited(parent_source: str, edits: list[_Part]) -> str:
    """Apply ``edits`` in order, each to the result of the one before."""
    if len(edits) > MAX_EDITS:
        raise _BadReplyError(f"{len(edits)} edits are too many for one step; make it smaller")
    result = parent_source
    for number, edit in enumerate(edits, start=1):
        try:
            result = _apply(result, edit)
        except _BadReplyError as e:
            raise _BadReplyError(f"edit {number}: {e}") from e
    if result == parent_source:
        raise _BadReplyError("the edits change nothing; make <replace> differ from <search>")
    if not result.strip():
        raise _BadReplyError("the edits remove the whole source; keep a complete kernel")
    return result


def _apply(source: str, edit: _Part) -> str:
    wanted = _sites(edit.attributes)
    search, replace = _search_replace(edit.body)
    if not search:
        raise _BadReplyError("<search> is empty; copy the text to change from the source")
    found = source.count(search)
    if found != wanted:
        raise _BadReplyError(_mismatch(search, found, wanted))
    grown = _n_bytes(source) + found * (_n_bytes(replace) - _n_bytes(search))
    if grown > MAX_SOURCE_BYTES:
        raise _BadReplyError(f"the source grows beyond {MAX_SOURCE_BYTES >> 10} KB; shorten it")
    return source.replace(search, replace)


def _sites(attributes: str) -> int:
    if not attributes.strip():
        return 1
    found = _SITES.fullmatch(attributes)
    if found is None or int(found[1]) == 0:
        raise _BadReplyError('its attribute is not sites="N" with N from 1; write sites="1"')
    return int(found[1])


def _search_replace(body: str) -> tuple[str, str]:
    # String methods, not a pattern: a hostile body must not cost quadratic time.
    before, search_tag, rest = body.partition("<search>")
    search, search_end, rest = rest.partition("</search>")
    between, replace_tag, rest = rest.partition("<replace>")
    replace, replace_end, after = rest.partition("</replace>")
    whole = search_tag and search_end and replace_tag and replace_end
    if not whole or (before + between + after).strip():
        raise _BadReplyError(
            "it is not one <search>...</search> followed by one <replace>...</replace>; "
            "write one <edit> per change"
        )
    return _block(search), _block(replace)


def _block(text: str) -> str:
    """Text that starts on its own line is that block of lines; any other is taken exactly."""
    fenced = _fence_body(text)
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


def _unwrapped(text: str) -> str:
    """Remove a Markdown fence around a source, or else its leading newline."""
    fenced = _fence_body(text)
    return text.removeprefix("\n") if fenced is None else fenced


def _fence_body(text: str) -> str | None:
    first, _, rest = text.strip().partition("\n")
    ticks = first[: len(first) - len(first.lstrip("`"))]
    body = rest.removesuffix(ticks)
    if len(ticks) < 3 or "`" in first[len(ticks) :] or body == rest:
        return None
    return body if not body or body.endswith("\n") else None
