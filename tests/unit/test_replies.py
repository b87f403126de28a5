"""Replies become values or complaints that say exactly what to change."""

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decisions.edits import MAX_EDITS
from decisions.replies import (
    MAX_CITES,
    MAX_DESIGNS,
    AnalysisText,
    PlanText,
    PlanTexts,
    SourceText,
    parse,
)
from decisions.summary import ClaimTexts
from decisions.tags import MAX_REPLY_BYTES, MAX_SENTENCE, MAX_SOURCE_BYTES
from events.vocabulary import Complaint, Nothing, Review, Task

PARENT = "#define ROWS 4\nfor (;;) { a(); }\nfor (;;) { b(); }\n"
WHY = "<hypothesis>Fewer loads, 2x.</hypothesis>"
LIMIT = "<bottleneck>the loads</bottleneck><bytes>6.3e7</bytes>"
TASKS = get_args(Task)


def design(body: str) -> str:
    """A design that says what is expected of it, and ``body``."""
    return f"<design>{WHY}{LIMIT}{body}</design>"


def complaint(task: Task, reply: str) -> str:
    parsed = parse(task, reply, PARENT)
    assert isinstance(parsed, Complaint), parsed
    return parsed.reason


def edited(edits: str) -> str:
    parsed = parse("step", WHY + edits, PARENT)
    assert isinstance(parsed, SourceText), parsed
    return parsed.source


def test_a_plan_carries_its_claim_and_citations() -> None:
    """A citation given twice is one citation."""
    body = "<speedup>1.5x</speedup><cites>f3, f7 f3</cites><plan>\nTwo rows.\n</plan>"

    parsed = parse("design", f"Sure!\n{design(body)}", PARENT)

    claims = ("Fewer loads, 2x.", 1.5, "the loads", 6.3e7)
    assert parsed == PlanTexts((PlanText(*claims, "Two rows.", "", ("f3", "f7")),))


def test_one_reply_has_several_designs_in_their_order() -> None:
    """Each is whole by itself, and no two have the same plan."""
    one, two = design("<plan>a</plan>"), design("<plan>b</plan>")
    parsed = parse("design", f"{one}\nand\n{two}", "")

    assert isinstance(parsed, PlanTexts)
    assert [plan.plan for plan in parsed.plans] == ["a", "b"]
    assert complaint("design", one + two + one) == (
        "design 3: its plan is that of an earlier one; change it"
    )
    many = "".join(design(f"<plan>{i}</plan>") for i in range(MAX_DESIGNS + 1))
    assert "send the best 8" in complaint("design", many)


def test_a_move_of_a_catalogue_need_not_say_what_is_expected_of_it() -> None:
    """A model has no name for its design, and has to say what will limit it."""
    body = f"{WHY}<plan>p</plan>"

    assert "<bottleneck> is missing" in complaint("design", f"<design>{body}</design>")
    named = parse("design", f"<design>{body}<move>design:rows</move></design>", "")
    assert isinstance(named, PlanTexts)
    assert named.plans[0].move == "design:rows"


@pytest.mark.parametrize(
    "body", ["\nint a;\n", "\n```c\nint a;\n```\n", "```\nint a;\n```", "\n````c\nint a;\n````"]
)
def test_a_fence_around_a_source_is_not_part_of_it(body: str) -> None:
    """Models fence code out of habit; it must not cost a turn."""
    parsed = parse("implement", f"{WHY}<source>{body}</source>", PARENT)

    assert parsed == SourceText("Fewer loads, 2x.", None, "int a;\n", "", ())


def test_tags_inside_a_source_are_text() -> None:
    """A comment in a kernel may speak of a plan."""
    parsed = parse("implement", f"{WHY}<source>// <plan>\n#include <x.h>\n</source>", PARENT)

    assert isinstance(parsed, SourceText)
    assert parsed.source == "// <plan>\n#include <x.h>\n"


def test_thinking_and_tags_named_in_prose_are_ignored() -> None:
    """Only what is outside ``<think>`` and backticks is the answer."""
    reply = "<think><review>stop</review></think>I fill `<review>`: <review>go</review>"

    assert parse("review", reply + "<reason>fine</reason>", "") == Review(go=True, reason="fine")


def test_an_analysis_is_one_line_each() -> None:
    """Both texts are recorded inline, so that line breaks are folded."""
    reply = "<bottleneck>loads\n  stall</bottleneck><advice>prefetch</advice>"

    assert parse("analyse", reply, "") == AnalysisText("loads stall", "prefetch", ClaimTexts())


@pytest.mark.parametrize("task", TASKS)
def test_every_role_may_have_nothing(task: Task) -> None:
    """An honest end of ideas is not a failure."""
    assert parse(task, "<nothing>all tried</nothing>", "") == Nothing(reason="all tried")


@pytest.mark.parametrize(
    "edit",
    [
        "<edit><search>ROWS 4</search><replace>ROWS 8</replace></edit>",
        "<edit sites='1'><search>ROWS 4\n</search><replace>ROWS 8\n</replace></edit>",
        "<edit sites=1>\n<search>\nROWS 4\n</search>\n<replace>\nROWS 8\n  </replace>\n</edit>",
        "<edit><search>\n```c\nROWS 4\n```\n</search><replace>ROWS 8</replace></edit>",
    ],
)
def test_an_edit_is_exact_inline_and_by_lines_in_block_form(edit: str) -> None:
    """Both ways to write an edit name the same text."""
    assert edited(edit) == PARENT.replace("ROWS 4", "ROWS 8")


def test_edits_apply_in_order_each_to_the_result_of_the_one_before() -> None:
    """The second edit finds what the first one wrote."""
    result = edited(
        '<edit sites="2"><search>for (;;)</search><replace>while (1)</replace></edit>'
        "<edit><search>while (1) { a</search><replace>while (2) { a</replace></edit>"
    )

    assert result == "#define ROWS 4\nwhile (2) { a(); }\nwhile (1) { b(); }\n"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            "<edit><search>for</search><replace>x</replace></edit>",
            "edit 1: <search> starting 'for' is found at 2 sites, expected 1; "
            'lengthen <search> until it is unique, or write sites="2"',
        ),
        (
            "<edit><search>a()</search><replace>c()</replace></edit>"
            "<edit><search>a()</search><replace>d()</replace></edit>",
            "edit 2: <search> starting 'a()' is found at 0 sites, expected 1; "
            "copy <search> exactly from the source, spacing included",
        ),
        (
            "<edit><search>a()</search><replace>a()</replace></edit>",
            "the edits change nothing; make <replace> differ from <search>",
        ),
        (
            "<edit><search></search><replace>x</replace></edit>",
            "edit 1: <search> is empty; copy the text to change from the source",
        ),
        (
            '<edit sites="0"><search>a</search><replace>x</replace></edit>',
            'edit 1: its attribute is not sites="N" with N from 1; write sites="1"',
        ),
        (
            f"<edit><search>{PARENT}</search><replace></replace></edit>",
            "the edits remove the whole source; keep a complete kernel",
        ),
    ],
)
def test_a_bad_edit_is_named_with_what_was_found(edits: str, expected: str) -> None:
    """The author can repair the edit without guessing."""
    assert complaint("step", WHY + edits) == expected


@pytest.mark.parametrize(
    "body", ["x", "<search>a</search>", "<search>a</search>b<replace>c</replace>", "<search>a"]
)
def test_an_edit_of_another_shape_is_refused(body: str) -> None:
    """Two changes in one edit, or half a change, are never guessed at."""
    assert "one <search>...</search> followed by" in complaint("step", f"{WHY}<edit>{body}</edit>")


@pytest.mark.parametrize(
    ("task", "reply", "expected"),
    [
        ("design", "I think so.", "<design> is missing"),
        ("design", f"{WHY}<plan>p</plan>", "a reply to 'design' has no <hypothesis>"),
        ("design", design(""), "design 1: <plan> is missing"),
        ("design", design("<plan> </plan>"), "design 1: <plan> is empty"),
        ("design", design(f"{WHY}<plan>p</plan>"), "<hypothesis> appears 2 times"),
        ("design", design("<plan>p"), "<plan> is not closed"),
        ("design", design("<plan>p</plan>")[:-9], "<design> is not closed"),
        ("design", design("<plan>p</plan><source>s</source>"), "a <design> has no <source>"),
        ("design", design("<plan>p</plan><speedup>lots</speedup>"), "<speedup> is not a positive"),
        ("design", design("<plan>p</plan><speedup>1e999</speedup>"), "<speedup> is not a positive"),
        ("design", design("<plan>p</plan><speedup>-1</speedup>"), "<speedup> is not a positive"),
        (
            "design",
            f"<design>{WHY}<bytes>2 GB</bytes><bottleneck>b</bottleneck><plan>p</plan></design>",
            "<bytes> is not a positive number",
        ),
        ("design", design("<plan>p</plan><cites>all</cites>"), "<cites> has 'all'"),
        ("design", f"{design('<plan>p</plan>')}<nothing>n</nothing>", "<nothing> stands alone"),
        ("implement", f"{WHY}<source>a\0b</source>", "NUL"),
        ("implement", f"{WHY}<source>\n\n</source>", "<source> is empty"),
        ("step", f"{WHY}<edit>e</edit><source>s</source>", "a reply to 'step' has no <source>"),
        ("review", "<review>maybe</review><reason>r</reason>", "neither 'go' nor 'stop'"),
        ("analyse", "<bottleneck>b</bottleneck>", "<advice> is missing"),
        ("analyse", "", "<bottleneck> is missing"),
    ],
)
def test_a_broken_reply_is_answered_with_what_to_change(
    task: Task, reply: str, expected: str
) -> None:
    """One complaint names one fault and its remedy."""
    assert expected in complaint(task, reply)


def test_limits_are_named_in_the_complaint() -> None:
    """Sentences are recorded inline, sources go to a compiler: both have a size."""
    long = "x" * (MAX_SENTENCE + 1)
    facts = ", ".join(f"f{i}" for i in range(MAX_CITES + 1))
    big = "x" * (MAX_SOURCE_BYTES + 1)
    many = "<edit><search>a</search><replace>b</replace></edit>" * (MAX_EDITS + 1)
    grow = f"<edit><search>a()</search><replace>{big}</replace></edit>"

    assert "at most 2000" in complaint(
        "implement", f"<hypothesis>{long}</hypothesis><source>s</source>"
    )
    assert "at most 50" in complaint("design", design(f"<plan>p</plan><cites>{facts}</cites>"))
    assert "longer than 256 KB" in complaint("implement", f"{WHY}<source>{big}</source>")
    assert "longer than 1024 KB" in complaint("implement", "x" * (MAX_REPLY_BYTES + 1))
    assert "too many for one step" in complaint("step", WHY + many)
    assert "grows beyond 256 KB" in complaint("step", WHY + grow)


fragments = st.sampled_from(
    [
        *(
            f"<{c}{t}>"
            for c in ("", "/")
            for t in ("hypothesis", "design", "plan", "bytes", "source", "edit", "cites")
        ),
        *(f"<{c}{t}>" for c in ("", "/") for t in ("search", "replace", "nothing", "speedup")),
        '<edit sites="2">',
        "<edit sites=x>",
        "```",
        "\n",
        "\ud800",
        "\0",
        "1.5",
        "f3",
        "for",
    ]
)


@given(
    st.sampled_from(TASKS),
    st.lists(fragments | st.text(max_size=20), max_size=30).map("".join),
    st.text(max_size=50),
)
@example("implement", f"{WHY}<source>\ud800</source>", "")
@example("step", f"{WHY}<edit><search>a</search><replace>\ud800</replace></edit>", "a\ud800")
def test_parsing_never_raises(task: Task, reply: str, parent: str) -> None:
    """Whatever an agent writes is an answer, and a complaint has a reason."""
    parsed = parse(task, reply, parent)

    assert not isinstance(parsed, Complaint) or parsed.reason


def test_a_hostile_reply_takes_no_quadratic_time() -> None:
    """A megabyte of half tags is read at once (the suite's time limit is the check)."""
    half = "<search>a</search><replace>" * 30_000

    assert "one <search>" in complaint("step", f"{WHY}<edit>{half}</edit>")
    assert "is missing" in complaint("implement", "`" * 500_000 + "\n" + "`" * 400_000)
