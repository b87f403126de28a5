"""What is believed: a claim is checked by its probe; a new toolchain ends what was checked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.knowledge import EFFORT, verdict
from events.projections.knowledge import Knowledge
from events.vocabulary import (
    FactChecked,
    FactCheckRequested,
    FactJudged,
    FactLearned,
    FactProposed,
    FixtureReport,
    Prediction,
    Probe,
)

SOURCE = "a" * 64
RIGHT = FixtureReport(fixture="normal", margin=0.5)
WRONG = FixtureReport(fixture="normal", margin=1.5)


def probe(predicts: Prediction, **fields: Any) -> Probe:
    """A probe of one kernel."""
    return Probe(kernel="k", source=SOURCE, predicts=predicts, **fields)


def claim(predicts: Prediction | None) -> FactProposed:
    """A claim about the whole target."""
    own = probe(predicts) if predicts else None
    return FactProposed(topic="document", kernel="", claim="so it is", probe=own, author="analyst")


def did(**fields: Any) -> FactChecked:
    """What a probe did."""
    return FactChecked.model_validate(
        {"fact": 1, "built": True, "wall_s": 0, "toolchain": ""} | fields
    )


@pytest.mark.parametrize(
    ("asked", "checked", "state"),
    [
        (probe("builds"), did(), "confirmed"),
        (probe("builds"), did(built=False, signature="E1: no"), "refuted"),
        (probe("refused"), did(), "refuted"),
        (probe("refused", signature="E1"), did(built=False, signature="E1: no"), "confirmed"),
        (probe("refused", signature="E1"), did(built=False, signature="E2: no"), "proposed"),
        (probe("computes"), did(fixtures=(RIGHT, RIGHT)), "confirmed"),
        (probe("computes"), did(fixtures=(RIGHT, WRONG)), "refuted"),
        (probe("computes"), did(built=False, signature="E1: no"), "proposed"),
        (probe("costs", high=10), did(cycles=10), "confirmed"),
        (probe("costs", high=10), did(cycles=11), "refuted"),
        (probe("costs", low=10), did(cycles=9), "refuted"),
        (probe("costs", low=10), did(cycles=None), "proposed"),
    ],
)
def test_a_probe_decides_what_its_claim_is_worth(
    asked: Probe, checked: FactChecked, state: str
) -> None:
    """A probe that says nothing of its claim leaves it as it was."""
    assert verdict("document", asked, checked)[0] == state


def test_a_rule_holds_while_its_source_is_refused_in_whatever_words() -> None:
    """A toolchain may reword a diagnostic."""
    asked = probe("refused", signature="E1: old words")
    assert verdict("rule", asked, did(built=False, signature="E1: new words"))[0] == "confirmed"
    assert verdict("rule", asked, did())[0] == "refuted"


@given(st.lists(st.sampled_from([None, *EFFORT]), max_size=20))
def test_after_a_new_toolchain_nothing_is_believed_and_every_probe_waits(
    kinds: list[Prediction | None],
) -> None:
    """What cannot be checked stays stale, and says so."""
    knowledge = Knowledge()
    for seq, predicts in enumerate(kinds):
        knowledge.propose(claim(predicts), seq)
    for number in list(knowledge.waiting):
        asked = knowledge.facts[number].probe
        assert asked is not None
        knowledge.request_check(
            FactCheckRequested(fact=number, probe=asked, fixture_seeds=(), reasons="")
        )
        knowledge.check(did(fact=number), 0, is_current=True)
        knowledge.judge(FactJudged(fact=number, state="confirmed", reason=""))
    assert not knowledge.waiting
    assert not knowledge.checked

    knowledge.outdate()

    assert set(knowledge.states.values()) <= {"stale"}
    assert list(knowledge.waiting) == [n for n, kind in enumerate(kinds, 1) if kind is not None]


def test_only_facts_are_cited() -> None:
    """Agents make up names."""
    knowledge = Knowledge()
    learned = FactLearned(kernel="k", topic="noise", claim="quiet", toolchain="")
    knowledge.learn(learned, 0, is_current=True)

    knowledge.cite(("f1", "f2", "h1", "f", "f-1", "f\u00b2", "1", ""))

    assert knowledge.uses == {1: 1}
    assert knowledge.states == {1: "confirmed"}
