"""Facts are worded from figures; a rule never refuses what is known to build."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.keeper import KeeperActor
from actors.messages import Command
from decisions.claims import bound_claim, bound_figures, noise_claim
from events.toolchain import toolchain_digest
from events.vocabulary import FactLearned, LearningRequested, RunInterrupted
from knowledge.rules import Derivation, learn, occurs, violated
from targets.protocol import Target

SHA = {name: f"{number:064x}" for number, name in enumerate(("diagnostics", "source", "good"))}


class OneLineTarget:
    """A target whose normal form is words with one space between them."""

    def fingerprint(self) -> dict[str, str]:
        """Name the toolchain."""
        return {"cc": "13"}

    def normalize(self, source: str) -> str:
        """Remove spacing."""
        return " ".join(source.split())


def keeper() -> KeeperActor:
    return KeeperActor(cast("Target", OneLineTarget()), lambda: 0.0)


def rules(*snippets: str) -> dict[int, FactLearned]:
    return {
        n: FactLearned(kernel="k", topic="rule", claim="", snippet=snippet, toolchain="")
        for n, snippet in enumerate(snippets, start=3)
    }


def rule_fact(snippet: str, source: str, good: str = "", *, certain: bool = True) -> FactLearned:
    request = LearningRequested(
        kernel="qkv",
        topic="rule",
        diagnostics=SHA["diagnostics"],
        source=SHA["source"],
        signature="error: unknown",
        snippet=snippet,
        certain=certain,
        known_good=(SHA["good"],),
    )
    texts = {"diagnostics": "note: x\nk.c:1: error: no vdot8\n", "source": source, "good": good}
    blobs = {SHA[name]: text.encode() for name, text in texts.items()}
    event = keeper().handle(Command(1, 1, request, blobs)).event
    assert isinstance(event, FactLearned)
    return event


def test_a_failed_build_gives_a_rule_with_the_toolchain_that_refused_it() -> None:
    """The snippet is kept in the target's normal form, the form that screening looks at."""
    fact = rule_fact("vdot8( a,\n b )", "x = vdot8( a,  b );")

    assert fact.snippet == "vdot8( a, b )"
    assert fact.signature == "error: unknown"
    assert fact.claim == (
        "A source that contains `vdot8( a, b )` does not build: k.c:1: error: no vdot8"
    )
    assert fact.toolchain == toolchain_digest({"cc": "13"})


@pytest.mark.parametrize(
    ("snippet", "good", "doubt"),
    [
        ("", "", "no offending text"),
        ("}", "", "no offending text"),
        ("for", "", "no offending text"),
        ("){};[]", "", "no offending text"),
        ("elsewhere", "", "not in the source"),
        ("vdot8", "y = vdot8;", "in a source that builds"),
    ],
)
def test_a_doubtful_snippet_is_a_claim_and_no_rule(snippet: str, good: str, doubt: str) -> None:
    """A wrong rule would refuse good candidates for the rest of the run."""
    fact = rule_fact(snippet, "x = vdot8; for (;;) {}  ){};[]", good)

    assert fact.snippet == ""
    assert doubt in fact.claim
    assert "k.c:1: error: no vdot8" in fact.claim


def test_a_line_that_a_compiler_stumbles_over_is_no_rule() -> None:
    """What is wrong may stand before it; the line is quoted to agents, and refuses nothing."""
    fact = rule_fact("x = vdot8;", "int y x = vdot8;", certain=False)

    assert fact.snippet == ""
    assert fact.claim == (
        "A build failed at `x = vdot8;` with: k.c:1: error: no vdot8 "
        "(no rule: it may be legal elsewhere)"
    )


def test_a_rule_matches_whole_words() -> None:
    """``dot4`` is refused, ``dot48`` and ``my_dot4`` are other names."""
    known = rules("nope", "dot4", "dot4(")

    assert violated(known, "x = dot4(a);") == 4
    assert violated(known, "x = dot48(a) + my_dot4;") is None


@given(st.text(max_size=12), st.text(max_size=40), st.lists(st.text(max_size=40), max_size=4))
def test_no_rule_refuses_a_source_known_to_build(
    snippet: str, source: str, known_good: list[str]
) -> None:
    """And each rule refuses the very source that taught it."""
    derived = learn(snippet, source, known_good, certain=True)

    if derived.snippet:
        known = rules(derived.snippet)
        assert violated(known, source) == 3
        assert all(violated(known, good) is None for good in known_good)
    else:
        assert derived.doubt


def test_an_empty_snippet_occurs_nowhere() -> None:
    """A claim without a predicate never refuses anything."""
    assert not occurs("", "anything")
    assert learn(" ", "anything", [], certain=True) == Derivation(
        "", "no offending text that would mean anything elsewhere"
    )


def test_figures_are_worded_with_units() -> None:
    """The sentences stand in prompts as they are."""
    measured = bound_figures({"plain_s": 0.002, "wide_s": 0.00125, "weight_bytes": 62.5e6})

    assert bound_claim(measured) == (
        "Moving the 62.5 MB of weights alone takes 1.25 ms on this device (50 GB/s, load-only "
        "variant wide): no version can be faster."
    )
    assert noise_claim({"pair_sd_pct": 0.314, "slot_pct": 0.02, "n_pairs": 48}) == (
        "Two runs of one version differ by 0.314 log-percent within a pair (robust scale over 48 "
        "pairs); running first changes a time by +0.02: a smaller effect needs many pairs to be "
        "seen."
    )


@pytest.mark.parametrize("figures", [{}, {"plain_s": 1.0}, {"weight_bytes": 1.0}])
def test_a_bound_without_its_figures_is_refused(figures: dict[str, float]) -> None:
    """A bound of nothing would be believed by every role."""
    with pytest.raises(ValueError, match="a bound needs"):
        bound_figures(figures)


@pytest.mark.parametrize(
    ("topic", "figures", "added"),
    [
        ("bound", {"a_s": 0.001, "weight_bytes": 1e6}, {"bound_s": 0.001, "rate_gb_s": 1.0}),
        ("noise", {"pair_sd_pct": 0.3, "slot_pct": 0.0, "n_pairs": 12.0}, {}),
    ],
)
def test_the_keeper_keeps_the_figures_with_the_claim(
    topic: str, figures: dict[str, float], added: dict[str, float]
) -> None:
    """Later decisions read the numbers, prompts the sentence."""
    request = LearningRequested.model_validate(
        {"kernel": "qkv", "topic": topic, "figures": figures}
    )
    event = keeper().handle(Command(1, 1, request, {})).event

    assert isinstance(event, FactLearned)
    assert event.value == {**figures, **added}
    assert event.claim


def test_the_keeper_refuses_other_work() -> None:
    """A command in the wrong mailbox is a defect of the director."""
    with pytest.raises(ValueError, match="does not take run_interrupted"):
        keeper().handle(Command(1, 1, cast("LearningRequested", RunInterrupted(reason="x")), {}))
