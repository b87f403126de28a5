"""Turns what a role is told into its prompt: one template per role and task."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Protocol

from jinja2 import DictLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATES = (
    "analyst_analyse",
    "analyst_summarize",
    "architect_design",
    "implementer_implement",
    "optimizer_step",
    "reviewer_review",
)
_PARTS = ("_known", "_hints", "_history", "_proposal", "_claim", "_repair")
_LINE = 400
_BEGINNING = 40_000
"""Characters of an unusable reply that its author is shown again; it may be a megabyte long."""


class LessonTold(Protocol):
    """An earlier candidate and its verdict."""

    @property
    def candidate(self) -> int:
        """Its number."""

    @property
    def form(self) -> str:
        """Design, step, baseline or canary."""

    @property
    def hypothesis(self) -> str:
        """What its author expected."""

    @property
    def verdict(self) -> str:
        """What became of it."""

    @property
    def effect(self) -> float | None:
        """Log-percent against the best version of its time; None if not measured."""


class Told(Protocol):
    """The state that a prompt may show; `decisions.brief.Brief` is one."""

    @property
    def kernel(self) -> str:
        """Its name."""

    @property
    def task(self) -> str:
        """The kernel's card."""

    @property
    def incumbent(self) -> int:
        """Number of the best version."""

    @property
    def speedup(self) -> float | None:
        """Of the best version over the baseline."""

    @property
    def time_over_bound(self) -> float | None:
        """Of the best version."""

    @property
    def bottleneck(self) -> str:
        """The analyst's words, if there are any."""

    @property
    def facts(self) -> Sequence[tuple[str, str, str]]:
        """Names of facts, claims, and what is believed of them: confirmed, refuted, ..."""

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Hint ids and what the operator said."""

    @property
    def lessons(self) -> Sequence[LessonTold]:
        """Earlier candidates."""

    @property
    def tried(self) -> Sequence[str]:
        """Catalogue moves already proposed."""


@dataclass(frozen=True)
class Texts:
    """The texts that a prompt shows besides the state; "" where there is none."""

    source: str
    """Of the best version."""
    plan: str = ""
    document: str = ""
    """Title of the document that the passage is of."""
    passage: str = ""
    draft: str = ""
    complaint: str = ""
    """Why the previous reply could not be used."""
    previous: str = ""


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt and the exact template that it came from."""

    text: str
    template: str
    """The template and the parts that it may include, as one text."""

    @property
    def template_sha(self) -> str:
        """SHA-256 of `template`, hex: the version of the prompt."""
        return hashlib.sha256(self.template.encode()).hexdigest()


def render(
    role: str, task: str, told: Told, *, texts: Texts, toolchain: Mapping[str, str]
) -> Prompt:
    """Return the prompt of ``role`` for ``task``.

    Args:
        role: whose template.
        task: which template.
        told: the state.
        texts: best source, plan, draft, and the previous reply of a repair.
        toolchain: the target's fingerprint.

    Raises:
        ValueError: there is no template for this role and task.
    """
    name = f"{role}_{task}"
    if name not in TEMPLATES:
        raise ValueError(f"no template {name}.md; there are {', '.join(TEMPLATES)}")
    text = _ENVIRONMENT.get_template(name).render(told=told, texts=texts, toolchain=toolchain)
    return Prompt(text, "\n".join(_TEXTS[part] for part in (name, *_PARTS)))


def _fenced(text: str) -> str:
    """Put ``text`` between fences that no run of backticks in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _one_line(text: str) -> str:
    """Keep ``text`` from forging lines of the prompt."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."


def _beginning(text: str) -> str:
    return text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}\n[and so on]"


def _environment(texts: Mapping[str, str]) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=DictLoader(texts),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"fenced": _fenced, "one_line": _one_line, "beginning": _beginning}
    return environment


_TEXTS = {
    name: files("prompts").joinpath(f"{name}.md").read_text("utf-8")
    for name in (*TEMPLATES, *_PARTS)
}
_ENVIRONMENT = _environment(_TEXTS)
