"""Reads the claims of a reply: what is said, the words it rests on, and a program to check it."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from decisions.edits import edited
from decisions.tags import BadReplyError, Part, opening, parts_of, sentence, source_of
from events.vocabulary import Claim, Prediction, Probe, Sha

MAX_CLAIMS = 40
"""Of one reply; those after them are dropped."""
MIN_QUOTE = 12
"""Characters: shorter words are found in any document."""
PREDICTIONS: tuple[Prediction, ...] = get_args(Prediction)
_CLAIM = opening(("says", "quote", "probe"))
_PROBE = opening(("source", "edit"))
_ATTRIBUTES = re.compile(r"""\s*([a-z]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_MAX_SIGNATURE = 300


@dataclass(frozen=True)
class ProbeText:
    """A program and what it should do."""

    source: str
    predicts: Prediction
    signature: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ClaimText:
    """One claim, its quote and its probe."""

    says: str
    quote: str
    """Of the passage, spaces aside; "" for a claim that rests on none."""
    probe: ProbeText | None


@dataclass(frozen=True)
class ClaimTexts:
    """The claims of a reply, and why others of it were dropped."""

    claims: tuple[ClaimText, ...] = ()
    dropped: tuple[str, ...] = ()

    def recorded(self, kernel: str) -> tuple[Claim, ...]:
        """As the record has them: quotes and sources are blobs.

        Args:
            kernel: whose signature and fixtures the probes have.
        """
        return tuple(
            Claim(
                says=claim.says,
                quote=_sha(claim.quote) if claim.quote else None,
                probe=_probe(claim.probe, kernel),
            )
            for claim in self.claims
        )

    def blobs(self) -> tuple[bytes, ...]:
        """Quotes and sources."""
        quotes = [claim.quote for claim in self.claims if claim.quote]
        sources = [claim.probe.source for claim in self.claims if claim.probe]
        return tuple(text.encode() for text in (*quotes, *sources))


def _sha(text: str) -> Sha:
    return hashlib.sha256(text.encode()).hexdigest()


def _probe(probe: ProbeText | None, kernel: str) -> Probe | None:
    if probe is None:
        return None
    return Probe(
        kernel=kernel,
        source=_sha(probe.source),
        predicts=probe.predicts,
        signature=probe.signature,
        low=probe.low,
        high=probe.high,
    )


def claims_in(parts: Sequence[Part], parent_source: str, passage: str | None) -> ClaimTexts:
    """Read the ``<claim>`` tags of a reply. One that cannot be used is dropped, not the reply.

    Args:
        parts: the tags.
        parent_source: what the edits of a probe are applied to.
        passage: what every claim must quote; None for claims from elsewhere, which need a probe,
            since nobody could tell them from guesses.
    """
    claims: list[ClaimText] = []
    dropped: list[str] = []
    for number, part in enumerate(parts, start=1):
        try:
            if number > MAX_CLAIMS:
                raise BadReplyError(f"a reply has at most {MAX_CLAIMS} claims")
            claim, doubt = _claim(part, parent_source, passage)
            claims.append(claim)
        except BadReplyError as e:
            doubt = str(e)
        if doubt:
            dropped.append(f"claim {number}: {doubt}")
    return ClaimTexts(tuple(claims), tuple(dropped))


def _claim(part: Part, parent_source: str, passage: str | None) -> tuple[ClaimText, str]:
    """Read a claim, with why its probe is dropped; empty if it is not."""
    parts = parts_of(part.body, _CLAIM)
    texts = {inner.tag: inner for inner in parts}
    if len(texts) < len(parts):
        raise BadReplyError("a tag stands twice in it; write one <claim> per claim")
    if "says" not in texts:
        raise BadReplyError("<says> is missing; write the claim as one sentence")
    says = sentence(texts["says"])
    quote = "" if passage is None else _quote(texts.get("quote"), passage)
    probe, doubt = None, ""
    if "probe" in texts:
        try:
            probe = _probe_text(texts["probe"], parent_source)
        except BadReplyError as e:
            doubt = f"its probe: {e}"
    if passage is None and probe is None:
        raise BadReplyError(doubt or "it has no <probe>, so nobody can check it")
    return ClaimText(says, quote, probe), doubt


def _quote(part: Part | None, passage: str) -> str:
    if part is None:
        raise BadReplyError("<quote> is missing; copy the words of the passage it rests on")
    quote = sentence(part)
    if len(quote) < MIN_QUOTE:
        raise BadReplyError(f"its quote has fewer than {MIN_QUOTE} characters")
    if quote not in " ".join(passage.split()):
        raise BadReplyError(f"its quote is not in the passage: {quote[:80]!r}")
    return quote


def _probe_text(part: Part, parent_source: str) -> ProbeText:
    given = {name: one or other for name, one, other in _ATTRIBUTES.findall(part.attributes)}
    predicts = next((p for p in PREDICTIONS if p == given.get("predicts")), None)
    if predicts is None:
        known = ", ".join(PREDICTIONS)
        raise BadReplyError(f'it needs the attribute predicts="...", one of {known}')
    low, high = _cycles(given.get("low")), _cycles(given.get("high"))
    if predicts == "costs" and low is None and high is None:
        raise BadReplyError('a probe that costs needs low="..." or high="...", static cycles')
    signature = given.get("signature", "") if predicts == "refused" else ""
    bounds = (low, high) if predicts == "costs" else (None, None)
    source = _source(parts_of(part.body, _PROBE), parent_source)
    return ProbeText(source, predicts, signature[:_MAX_SIGNATURE], *bounds)


def _source(parts: Sequence[Part], parent_source: str) -> str:
    tags = {part.tag for part in parts}
    if tags == {"edit"}:
        return edited(parent_source, parts)
    if tags != {"source"} or len(parts) > 1:
        raise BadReplyError("it holds one <source>, or <edit>s of the best version")
    return source_of(parts[0])


def _cycles(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadReplyError(f"{text[:40]!r} is no number of cycles")
    return value
