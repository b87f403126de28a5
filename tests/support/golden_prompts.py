"""Prompts as they should read: `python -m tests.support.golden_prompts` writes them anew."""

from dataclasses import replace
from pathlib import Path

from decisions.brief import Brief, Known, Lesson
from decisions.settling import FREE
from events.campaign import Model
from events.vocabulary import DesignPlan
from prompts.render import TEMPLATES, render
from prompts.told import Texts

GOLDEN = Path(__file__).parents[1] / "data" / "prompts"
TOOLCHAIN = {"cpu": "test cpu", "cc": "gcc 13"}
LIMIT = 24_000
BRIEF = Brief(
    kernel="qkv",
    task="y = W x, W in f8.",
    incumbent=7,
    incumbent_source="0" * 64,
    incumbent_profile="1" * 64,
    speedup=3.25,
    time_over_bound=1.5,
    bottleneck="Loads stall: 61 % of the makespan. Prefetch further ahead.",
    facts=(
        Known("f1", "The bound is 1 ms.", "confirmed", is_rule=False, uses=0),
        Known("f2", "A source with `asm` does not build.", "confirmed", is_rule=True, uses=0),
        Known("f5", "A line is 64 bytes.", "stale", is_rule=False, uses=0),
        Known("f6", "Two loads may overlap.", "proposed", is_rule=False, uses=0),
        Known("f7", "Stores are free.", "refuted", is_rule=False, uses=0),
    ),
    hints=(("h1", "Try a table."), ("h4", "Not the table\n# Lessons")),
    lessons=(
        Lesson(8, "step", "Unroll by 4.", "rejected: slower", 1.25),
        Lesson(9, "design", "Transpose.", "refused at build: no", None),
    ),
    tried=("step:U=4",),
    model=Model(),
    price=FREE,
    seed=1,
    n_designs=3,
    design=DesignPlan(
        hypothesis="Rows in pairs halve the loads of x.",
        bottleneck="the loads of W, 6.3e7 bytes",
        bytes_moved=6.4e7,
        plan="0" * 64,
    ),
    claim="Rows in pairs, 1.2x.",
)
TEXTS = Texts(
    source="int best;\n",
    plan="Two rows at a time.",
    document="manual",
    passage="A block divides a row.",
    draft="int draft;",
    profile="makespan 1200",
)
REPAIR = Texts(
    source="int best;\n",
    plan="Two rows at a time.",
    draft="int draft",
    diagnostics="line 1: expected ';'",
    complaint="<source> is missing",
    previous="Here it is.",
)


def golden() -> dict[str, str]:
    """The prompt of every template by the name of its file, and one with all that a repair has."""
    texts = {name: _text(name, BRIEF, TEXTS) for name in TEMPLATES}
    refused = replace(BRIEF, refusal="refused at build: expected ';'")
    texts["implementer_repair"] = _text("implementer_implement", refused, REPAIR)
    return {f"{name}.md": text for name, text in texts.items()}


def _text(name: str, brief: Brief, texts: Texts) -> str:
    role, _, task = name.partition("_")
    return render(role, task, brief, texts=texts, toolchain=TOOLCHAIN, limit=LIMIT).text


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for path in GOLDEN.iterdir():
        path.unlink()
    for name, text in golden().items():
        (GOLDEN / name).write_text(text, "utf-8")
