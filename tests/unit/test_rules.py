"""Legality rules: a failed build becomes a predicate that experiments bear out, or a doubt."""

from typing import Final

import pytest

from actors.keeper import KeeperActor
from actors.messages import Answer, Command
from actors.screening import sha256
from decisions.claims import rule_claim
from decisions.knowledge import admission
from events.predicates import breaks, spelled, words
from events.vocabulary import FactLearned, LearningRequested, Trial
from knowledge.rules import Derivation, Failing, learn
from targets.protocol import BuildFailed
from targets.sim.target import SimTarget
from tests.support.fake_target import BASE, FakeTarget

KERNEL: Final = "sliding_attention_output"
TARGET: Final = SimTarget("quiet")
BASELINE: Final = TARGET.sources(KERNEL).baseline
LOAD: Final = "load y0 from y_all to head"


def build(source: str) -> BuildFailed | None:
    built = TARGET.build(KERNEL, source)
    return built if isinstance(built, BuildFailed) else None


def changed(old: str, new: str) -> str:
    """The baseline with one text replaced."""
    assert old in BASELINE
    return BASELINE.replace(old, new, 1)


def derived(*failures: str, known_good: tuple[str, ...] = (BASELINE,)) -> Derivation:
    failed = build(failures[0])
    assert failed is not None
    return learn(Failing(failed.signature, failures, known_good), build, TARGET.normalize)


def refuses(found: Derivation, source: str) -> bool:
    assert found.predicate is not None, found.doubt
    return breaks(found.predicate, words(TARGET.normalize(source)))


@pytest.mark.parametrize(
    ("old", "new", "also_bad", "still_good"),
    [
        ("buffers 1", "buffers 9", "buffers 23", "buffers 8"),
        ("lanes 1", "lanes 3", "lanes 5", "lanes 8"),
        ("cluster one", "cluster copy:4", "cluster copy:3", "cluster copy:2"),
        ("idle:256", "idle:48", "idle:96", "idle:64"),
        ("main w |", "sub w |", "sub x0 | lookup bf16 |", "main x0 |"),
        ("mul self", "exp | mul self", "exp | mul 2", "mul self | exp"),
        ("0..15 over H", "0..7 over H", "0..11 over H", "0..5 over H"),
        (LOAD, "load a, b, c, d, e from x, x, x, x, x to head", "load y, b, c, d, e from x to head",
         "load a, b, c, d from x, x, x, x to head"),
    ],
)  # fmt: skip
def test_a_rule_refuses_what_it_has_not_seen_and_spares_what_is_legal(
    old: str, new: str, also_bad: str, still_good: str
) -> None:
    """A rule of one text alone saves one build; the next source differs in a number or a name."""
    found = derived(changed(old, new))

    assert refuses(found, changed(old, new))
    assert refuses(found, changed(old, also_bad))
    assert not refuses(found, changed(old, still_good))
    assert not refuses(found, BASELINE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mul sv", "mul nothing"),
        ("mul sv", "mul w0"),
        ("from wo to rows", "from wo to head"),
        ("| lookup bf16 | commit dm bf16", "| commit dm f32"),
    ],
)
def test_what_depends_on_the_rest_of_the_source_is_no_rule(old: str, new: str) -> None:
    """A name says nothing: another source defines it otherwise, and would be refused for that."""
    found = derived(changed(old, new))

    assert found.predicate is None
    assert found.doubt


def test_the_reproducer_is_small_and_fails_alike() -> None:
    """It is built again under every later toolchain, and read by people."""
    source = changed("buffers 1", "buffers 9")
    found = derived(source)
    failed = build(found.reproducer)

    assert failed is not None
    assert failed.signature == "E-BUFFERS: N buffers; N to N"
    assert len(found.reproducer.splitlines()) < len(source.splitlines()) / 3


def test_a_predicate_refuses_every_failure_of_its_signature() -> None:
    """No buffers and too many are one diagnostic: one rule has both conditions."""
    few, many = changed("buffers 1", "buffers 0"), changed("buffers 1", "buffers 9")
    found = derived(many, few)

    assert refuses(found, few)
    assert refuses(found, many)
    assert found.predicate is not None
    assert len(found.predicate.conditions) == 2
    assert {t.is_refused for t in found.trials if t.source in (few, many)} == {True}


def test_what_another_kernel_has_taught_takes_no_builds() -> None:
    """It is held against this kernel's sources all the same, and against nothing else."""
    bad = changed("buffers 1", "buffers 9")
    taught = derived(bad).predicate
    assert taught is not None

    def again(known_good: str) -> Derivation:
        failed = Failing("any", [bad], [known_good], likely=[taught])
        return learn(failed, lambda _: pytest.fail("a build"), TARGET.normalize)

    assert (again(BASELINE).predicate, again(BASELINE).n_builds) == (taught, 0)
    with pytest.raises(pytest.fail.Exception, match="a build"):
        again(bad)


def test_a_counterexample_forbids_a_predicate() -> None:
    """What was refuted is not learned again: the source that refuted it is known to build."""
    source = changed("mul self", "exp | mul self")
    wide = derived(source)
    assert wide.predicate is not None
    narrow = derived(source, known_good=(BASELINE, "x exp | mul y"))

    assert spelled(wide.predicate) == "`exp | mul`"
    assert narrow.predicate is None or not refuses(narrow, "x exp | mul y")


def test_a_failure_that_does_not_come_again_teaches_nothing() -> None:
    """A compiler that was killed once says nothing of the source."""
    killed = Failing("compiler: killed", [BASELINE], [BASELINE])
    found = learn(killed, build, TARGET.normalize)

    assert (found.reproducer, found.predicate) == ("", None)
    assert "again" in found.doubt


def test_learning_is_the_same_every_time() -> None:
    """A command that is sent again must find the same."""
    assert derived(changed("lanes 1", "lanes 3")) == derived(changed("lanes 1", "lanes 3"))


# ---- the keeper ------------------------------------------------------------------------------


def answer(source: str) -> Answer:
    """What the keeper learns from a source that does not build."""
    texts = {sha256(t.encode()): t.encode() for t in (source, BASE, "line 2: broken")}
    request = LearningRequested(
        kernel="alpha",
        topic="rule",
        diagnostics=sha256(b"line 2: broken"),
        source=sha256(source.encode()),
        signature="broken statement",
        known_good=(sha256(BASE.encode()),),
    )
    return KeeperActor(FakeTarget(), lambda: 0.0).handle(Command(1, 1, request, texts))


def test_the_keeper_answers_with_its_trials_as_blobs() -> None:
    """Audit holds the predicate against each of them again."""
    target, source = FakeTarget(), "time 0.1\nbroken\n"
    told = answer(source)
    fact = told.event
    assert isinstance(fact, FactLearned)
    names = [sha256(data) for data in told.blobs]
    refused, built = (sha256(target.normalize(text).encode()) for text in (source, BASE))

    assert fact.predicate is not None
    assert fact.claim == "A source that contains `broken` does not build: line 2: broken"
    assert fact.trials == (
        Trial(source=refused, breaks=True, is_refused=True),
        Trial(source=built, breaks=False, is_refused=False),
    )
    assert fact.probe is not None
    assert {refused, built, fact.probe.source} == set(names)


def test_a_doubt_is_told_to_agents() -> None:
    """What was refused is worth knowing, even if no source is refused on it."""
    assert (
        rule_claim(None, "it depends", "E1", "") == "A build failed with: E1 (no rule: it depends)"
    )


TRIALS: Final = {
    "bad": Trial(source="a" * 64, breaks=True, is_refused=True),
    "good": Trial(source="b" * 64, breaks=False, is_refused=False),
    "missed": Trial(source="c" * 64, breaks=False, is_refused=True),
    "false": Trial(source="d" * 64, breaks=True, is_refused=False),
}


@pytest.mark.parametrize(
    ("trials", "state"),
    [
        (("bad", "good"), "confirmed"),
        (("bad",), "proposed"),
        (("good",), "proposed"),
        (("bad", "good", "missed"), "proposed"),
        (("bad", "good", "false"), "proposed"),
    ],
)
def test_no_rule_without_trials_of_both_kinds(trials: tuple[str, ...], state: str) -> None:
    """It refuses all that is known to be refused, and none of what is known to build."""
    fact = answer("broken\n").event
    assert isinstance(fact, FactLearned)
    fact = fact.model_copy(update={"trials": tuple(TRIALS[name] for name in trials)})

    assert admission(fact)[0] == state
