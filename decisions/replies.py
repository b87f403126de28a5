"""Reads a role's reply: tagged text in, a value or an exact complaint out. Never raises."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from decisions.edits import edited
from decisions.summary import ClaimTexts, claims_in
from decisions.tags import BadReplyError, Part, check_size, opening, parts_of, sentence, source_of
from events.vocabulary import (
    Analysis,
    Complaint,
    DesignPlan,
    Designs,
    Draft,
    Nothing,
    Review,
    Sha,
    Summary,
    Task,
)

MAX_CITES = 50
MAX_DESIGNS = 8

_PROPOSAL = frozenset({"hypothesis", "speedup", "cites", "move"})
_TAKES: Mapping[str, frozenset[str]] = {
    "design": frozenset({"design"}),
    "implement": _PROPOSAL | {"source"},
    "step": _PROPOSAL | {"edit"},
    "analyse": frozenset({"bottleneck", "advice", "claim"}),
    "summarize": frozenset({"claim"}),
    "review": frozenset({"review", "reason"}),
}
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "design": ("design",),
    "implement": ("hypothesis", "source"),
    "step": ("hypothesis", "edit"),
    "analyse": ("bottleneck", "advice"),
    "summarize": ("claim",),
    "review": ("review", "reason"),
}
_DESIGN_TAKES = _PROPOSAL | {"bottleneck", "bytes", "plan"}
_DESIGN_NEEDS = ("hypothesis", "bottleneck", "bytes", "plan")
_MOVE_NEEDS = ("hypothesis", "plan")
_REPEATED = frozenset({"claim", "design", "edit"})
_OPENS = opening(_DESIGN_TAKES.union(*_TAKES.values()) | {"nothing"})


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


@dataclass(frozen=True)
class AnalysisText:
    """An analyst's one bottleneck, and claims that a program can check."""

    bottleneck: str
    advice: str
    made: ClaimTexts

    def analysis(self, kernel: str) -> Analysis:
        """As the record has it, of this kernel."""
        return Analysis(
            bottleneck=self.bottleneck,
            advice=self.advice,
            claims=self.made.recorded(kernel),
            dropped=self.made.dropped,
        )


@dataclass(frozen=True)
class SummaryText:
    """What an analyst says that a passage says."""

    made: ClaimTexts

    def summary(self, kernel: str) -> Summary:
        """As the record has it, with the kernel of its probes."""
        return Summary(claims=self.made.recorded(kernel), dropped=self.made.dropped)


def _sha(text: str) -> Sha:
    return hashlib.sha256(text.encode()).hexdigest()


Parsed = PlanTexts | SourceText | AnalysisText | SummaryText | Review | Complaint | Nothing


def parse(task: Task, reply: str, parent_source: str, passage: str = "") -> Parsed:
    """Read ``reply`` as an answer to ``task``.

    Args:
        task: decides which tags are taken and which are needed.
        reply: the whole reply; text outside the tags and in ``<think>`` is ignored.
        parent_source: what the edits of a ``step``, or of a probe, are applied to.
        passage: of a document, which a ``summarize`` reply quotes.

    Returns:
        The answer, or a `Complaint` whose reason tells the author what to change.
    """
    try:
        return _read(task, parts_of(reply, _OPENS), parent_source, passage)
    except BadReplyError as e:
        return Complaint(reason=str(e))


def _read(task: Task, parts: list[Part], parent_source: str, passage: str) -> Parsed:
    tags = [part.tag for part in parts]
    if tags == ["nothing"]:
        return Nothing(reason=sentence(parts[0]))
    _check_tags(f"a reply to {task!r}", tags, _TAKES[task], _NEEDS[task])
    texts = {part.tag: part for part in parts}
    match task:
        case "analyse":
            made = claims_in([p for p in parts if p.tag == "claim"], parent_source, None)
            return AnalysisText(sentence(texts["bottleneck"]), sentence(texts["advice"]), made)
        case "summarize":
            made = claims_in(parts, parent_source, passage)
            if not made.claims:
                raise BadReplyError(f"no claim can be used: {'; '.join(made.dropped)}")
            return SummaryText(made)
        case "review":
            return Review(go=_go(texts["review"]), reason=sentence(texts["reason"]))
        case "design":
            return _plans([part for part in parts if part.tag == "design"])
        case "implement":
            source = source_of(texts["source"])
            return SourceText(*_claim(texts), source, *_origin(texts))
        case "step":
            source = edited(parent_source, [part for part in parts if part.tag == "edit"])
            return SourceText(*_claim(texts), source, *_origin(texts))


def _plans(designs: list[Part]) -> PlanTexts:
    if len(designs) > MAX_DESIGNS:
        raise BadReplyError(f"{len(designs)} designs are too many; send the best {MAX_DESIGNS}")
    plans: list[PlanText] = []
    for number, design in enumerate(designs, start=1):
        try:
            plans.append(_plan(design))
        except BadReplyError as e:
            raise BadReplyError(f"design {number}: {e}") from e
        if plans[-1].plan in [plan.plan for plan in plans[:-1]]:
            raise BadReplyError(f"design {number}: its plan is that of an earlier one; change it")
    return PlanTexts(tuple(plans))


def _plan(design: Part) -> PlanText:
    parts = parts_of(design.body, _OPENS)
    tags = [part.tag for part in parts]
    needs = _MOVE_NEEDS if "move" in tags else _DESIGN_NEEDS
    _check_tags("a <design>", tags, _DESIGN_TAKES, needs)
    texts = {part.tag: part for part in parts}
    plan = texts["plan"].body.strip()
    check_size("plan", plan)
    return PlanText(
        *_claim(texts),
        sentence(texts["bottleneck"]) if "bottleneck" in texts else "",
        _positive(texts["bytes"]) if "bytes" in texts else None,
        plan,
        *_origin(texts),
    )


def _check_tags(what: str, tags: list[str], takes: frozenset[str], needs: tuple[str, ...]) -> None:
    if "nothing" in tags:
        raise BadReplyError("<nothing> stands alone; send it or an answer, not both")
    for tag in tags:
        if tag not in takes:
            known = ", ".join(f"<{t}>" for t in sorted(takes))
            raise BadReplyError(f"{what} has no <{tag}>; it takes {known}")
        if tag not in _REPEATED and tags.count(tag) > 1:
            raise BadReplyError(f"<{tag}> appears {tags.count(tag)} times; send it once")
    for tag in needs:
        if tag not in tags:
            raise BadReplyError(
                f"<{tag}> is missing; add <{tag}>...</{tag}>, or answer <nothing>why</nothing>"
            )


def _claim(texts: Mapping[str, Part]) -> tuple[str, float | None]:
    speedup = texts.get("speedup")
    return sentence(texts["hypothesis"]), None if speedup is None else _positive(speedup)


def _origin(texts: Mapping[str, Part]) -> tuple[str, tuple[str, ...]]:
    move = texts.get("move")
    return "" if move is None else sentence(move), _cites(texts.get("cites"))


def _positive(part: Part) -> float:
    try:
        value = float(part.body.strip().rstrip("x"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise BadReplyError(
            f"<{part.tag}> is not a positive number; write one such as 1.3, without a unit"
        )
    return value


def _cites(part: Part | None) -> tuple[str, ...]:
    if part is None:
        return ()
    ids = tuple(dict.fromkeys(part.body.replace(",", " ").split()))
    if len(ids) > MAX_CITES:
        raise BadReplyError(f"<cites> has {len(ids)} ids; name at most {MAX_CITES}")
    for cited in ids:
        if not re.fullmatch(r"[fh][0-9]{1,9}", cited):
            raise BadReplyError(
                f"<cites> has {cited[:40]!r}; list ids such as f3 or h1, or leave the tag out"
            )
    return ids


def _go(part: Part) -> bool:
    word = part.body.strip().lower()
    if word not in {"go", "stop"}:
        raise BadReplyError("<review> is neither 'go' nor 'stop'; write one of the two")
    return word == "go"
