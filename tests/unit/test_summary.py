"""Claims of a reply: each rests on words of the passage or on a program, or it is dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.replies import AnalysisText, SummaryText, parse
from decisions.summary import MAX_CLAIMS, ClaimText, ClaimTexts, ProbeText
from events.vocabulary import Claim, Complaint, Probe
from knowledge.passages import MAX_PASSAGE, passages

PASSAGE = "A block divides the slice's part\n  of the last axis."
PARENT = "load w block 64\n"
QUOTE = "<quote>A block divides the slice's\npart of</quote>"
EDIT = "<edit><search>64</search><replace>100</replace></edit>"


def read(*claims: str) -> ClaimTexts:
    """The claims of a summary."""
    parsed = parse("summarize", "".join(f"<claim>{c}</claim>" for c in claims), PARENT, PASSAGE)
    assert isinstance(parsed, SummaryText), parsed
    return parsed.made


def dropped(claim: str) -> str:
    """Why a claim is dropped beside a good one."""
    made = read(f"<says>fine</says>{QUOTE}", claim)
    (why,) = made.dropped
    return why


def test_a_claim_has_its_words_and_its_probe() -> None:
    """Spaces of a quote do not matter; edits are applied to the best version."""
    probe = f"<probe predicts='refused' signature=\"E-BLOCK\">{EDIT}</probe>"
    made = read(f"<says>A block\ndivides a row.</says>{QUOTE}{probe}")

    text = ProbeText("load w block 100\n", "refused", "E-BLOCK", None, None)
    assert made == ClaimTexts(
        (ClaimText("A block divides a row.", "A block divides the slice's part of", text),)
    )
    (claim,) = made.recorded("k")
    quote, source = made.blobs()
    assert isinstance(claim, Claim)
    assert isinstance(claim.probe, Probe)
    assert (claim.probe.kernel, quote, source) == (
        "k",
        b"A block divides the slice's part of",
        b"load w block 100\n",
    )


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (QUOTE, "claim 2: <says> is missing"),
        ("<says>x</says>", "<quote> is missing"),
        ("<says>x</says><quote>A block divides the row of</quote>", "not in the passage"),
        ("<says>x</says><quote>A block</quote>", "fewer than 12 characters"),
        (f"<says>x</says><says>y</says>{QUOTE}", "a tag stands twice"),
        (f"<says>x</says>{QUOTE}<probe>{EDIT}</probe>", 'needs the attribute predicts="..."'),
        (f"<says>x</says>{QUOTE}<probe predicts='ok'>{EDIT}</probe>", "needs the attribute"),
        (f"<says>x</says>{QUOTE}<probe predicts='costs'>{EDIT}</probe>", 'needs low="..." or'),
        (
            f"<says>x</says>{QUOTE}<probe predicts='costs' low='many'>{EDIT}</probe>",
            "'many' is no number of cycles",
        ),
        (f"<says>x</says>{QUOTE}<probe predicts='builds'>text</probe>", "holds one <source>"),
        (
            f"<says>x</says>{QUOTE}<probe predicts='builds'>"
            "<edit><search>65</search><replace>1</replace></edit></probe>",
            "its probe: edit 1: <search> starting '65' is found at 0 sites",
        ),
        (f"<says>x</says>{QUOTE}<probe predicts='builds'><source> </source></probe>", "is empty"),
    ],
)
def test_what_cannot_be_used_of_a_claim_is_named(claim: str, why: str) -> None:
    """One bad claim does not cost the others."""
    assert why in dropped(claim)


def test_a_claim_is_kept_when_only_its_probe_is_bad() -> None:
    """It stays untested, which is what prompts will say."""
    made = read(f"<says>x</says>{QUOTE}<probe predicts='builds'></probe>")

    assert [claim.probe for claim in made.claims] == [None]
    assert len(made.dropped) == 1


def test_a_reply_without_a_usable_claim_is_a_complaint() -> None:
    """So that its author can quote what is there."""
    parsed = parse("summarize", "<claim><says>x</says></claim>", PARENT, PASSAGE)

    assert isinstance(parsed, Complaint)
    assert parsed.reason.startswith("no claim can be used: claim 1: <quote> is missing")


def test_a_reply_has_so_many_claims_at_most() -> None:
    """Each of them is a record, and a build."""
    made = read(*[f"<says>x</says>{QUOTE}"] * (MAX_CLAIMS + 2))

    assert len(made.claims) == MAX_CLAIMS
    assert len(made.dropped) == 2


def test_an_analyst_may_claim_what_a_program_can_check() -> None:
    """Such a claim rests on no document, so that it needs a probe."""
    reply = (
        "<bottleneck>loads</bottleneck><advice>more</advice><claim><says>a</says></claim>"
        f"<claim><says>b</says><probe predicts='builds'>{EDIT}</probe></claim>"
    )
    parsed = parse("analyse", reply, PARENT)

    assert isinstance(parsed, AnalysisText)
    assert [claim.says for claim in parsed.made.claims] == ["b"]
    assert parsed.made.dropped == ("claim 1: it has no <probe>, so nobody can check it",)
    assert parsed.analysis("k").claims[0].quote is None


# ---- passages -------------------------------------------------------------------------------

LINES = st.sampled_from(["# A\n", "## B\n", "\n", "text\n", "x" * 30, "#x\n", "\n\n\n", "é\n"])


@given(st.lists(LINES, max_size=40).map("".join), st.integers(1, 60))
def test_passages_are_all_of_a_document_and_short(text: str, limit: int) -> None:
    """Nothing is left out, nothing is added, nothing is too long for a prompt."""
    parts = passages(text, limit)

    assert "".join(parts) == text
    assert all(0 < len(part) <= limit for part in parts)


def test_a_document_is_cut_at_its_headings() -> None:
    """A section is read as a whole where it fits, beside others as long as they do."""
    sections = [f"## {n}\n" + "word " * 500 + "\n" for n in range(8)]

    parts = passages("".join(sections))

    assert parts == tuple("".join(sections[i : i + 3]) for i in (0, 3, 6))
    assert all(len(part) <= MAX_PASSAGE for part in parts)


def test_a_long_section_is_cut_between_paragraphs() -> None:
    """Blank lines alone are a document too."""
    assert passages("a" * 10 + "\n\n" + "b" * 10 + "\n", 15) == (
        "a" * 10 + "\n",
        "\n" + "b" * 10 + "\n",
    )
    assert len(passages("\n" * 80_000)) == 10
