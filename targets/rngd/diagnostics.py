"""What the three stages of the toolchain say, in one form."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from targets.protocol import BuildFailed

Stage = Literal["trace", "rules", "evaluate", "compile"]
MAX_SHOWN: Final = 300
"""Characters of a signature, and of a snippet: half a statement is no rule."""
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_NUMBER: Final = re.compile(r"\bT?\d[\d_.]*")
_RECORD: Final = re.compile(r"\{.*\}")
_PLAIN: Final = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Diagnostic:
    """Why a source is no kernel."""

    stage: Stage
    """Which part of the way it did not pass: tracing, this target's own rules, the evaluator, or
    the whole compiler."""
    what: str
    """Class of the message, such as an exception's name; stable."""
    message: str
    line: int | None = None
    """Of the source, where it is known."""
    snippet: str = ""
    """Offending text where there is no line: a statement of the traced kernel."""
    certain: bool = False
    """Whether the snippet alone makes any source illegal."""
    hint: str = ""
    """What to do, where the toolchain's own words do not say."""

    def refusal(self, source: str, names: Iterable[str] = ()) -> BuildFailed:
        """Return it as the protocol's verdict.

        Args:
            source: whose line is shown.
            names: chosen by the author; the signature does not hold them.
        """
        lines = source.splitlines()
        known = self.line is not None and 0 < self.line <= len(lines)
        snippet = lines[self.line - 1].strip() if known and self.line else self.snippet
        where = f"line {self.line}: " if known else ""
        hint = f"\n{self.hint}" if self.hint else ""
        first = (self.message.strip().splitlines() or [""])[0]
        signature = f"{self.stage}: {self.what}: {stable(first, names)}".rstrip(": ")
        fits = len(snippet) <= MAX_SHOWN
        return BuildFailed(
            f"{self.stage}: {where}{self.what}: {self.message.strip()}{hint}",
            signature[:MAX_SHOWN],
            snippet if fits else "",
            certain=self.certain and fits,
        )


def stable(message: str, names: Iterable[str]) -> str:
    """Take numbers, dumps and the author's names out of a message.

    A name that could be a word of the message stays, if it is not quoted there.
    """
    chosen = frozenset(name for name in names if not _PLAIN.fullmatch(name))
    text = _RECORD.sub("{}", _QUOTED.sub("_", message))
    text = re.sub(r"\w+", lambda word: "_" if word[0] in chosen else word[0], text)
    return _NUMBER.sub("N", text)
