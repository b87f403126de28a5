"""Turns what a role is told into its prompt: one template per role and task."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import DictLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from prompts.told import Texts, Told
from prompts.trimming import Shown, trimmed

TEMPLATES = (
    "analyst_analyse",
    "analyst_summarize",
    "architect_design",
    "implementer_implement",
    "optimizer_step",
    "reviewer_review",
)
_PARTS = (
    "_known", "_profile", "_hints", "_history", "_proposal", "_claim", "_plan", "_repair",
)  # fmt: skip
_LINE = 400
_BEGINNING = 24_000
"""Characters of an unusable reply that its author is shown again; it may be a megabyte long."""


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt and the exact template that it came from."""

    text: str
    template: str
    """The template and the parts that it may include, as one text."""
    dropped: tuple[str, ...]
    """What it had no room for: names of facts, and how many lessons and moves."""

    @property
    def template_sha(self) -> str:
        """SHA-256 of `template`, hex: the version of the prompt."""
        return hashlib.sha256(self.template.encode()).hexdigest()


def render(
    role: str, task: str, told: Told, *, texts: Texts, toolchain: Mapping[str, str], limit: int
) -> Prompt:
    """Return the prompt of ``role`` for ``task``.

    Args:
        role: whose template.
        task: which template.
        told: the state.
        texts: best source, plan, draft, and the previous reply of a repair.
        toolchain: the target's fingerprint.
        limit: tokens that it may take; see `trimmed`.

    Raises:
        ValueError: there is no template for this role and task.
    """
    name = f"{role}_{task}"
    if name not in TEMPLATES:
        raise ValueError(f"no template {name}.md; there are {', '.join(TEMPLATES)}")
    template = _ENVIRONMENT.get_template(name)

    def write(shown: Shown) -> str:
        return template.render(told=told, shown=shown, texts=texts, toolchain=toolchain)

    text, shown = trimmed(told, write, limit)
    return Prompt(text, "\n".join(_TEXTS[part] for part in (name, *_PARTS)), shown.dropped)


def header(template: str) -> str:
    """What a template is for: its role, task, inputs and output, as it says at its top."""
    return _TEXTS[template].partition("{#")[2].partition("#}")[0].strip()


def _fenced(text: str) -> str:
    """Put ``text`` between fences that no run of backticks in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _one_line(text: str, length: int = _LINE) -> str:
    """Keep ``text`` from forging lines of the prompt."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


def _beginning(text: str, length: int = _BEGINNING) -> str:
    return text if len(text) <= length else f"{text[:length]}\n[and so on]"


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
