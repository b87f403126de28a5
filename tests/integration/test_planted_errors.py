"""Agents read a manual with five errors: probes refute them, whatever the agents believe."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from actors.crew import crew
from actors.director import Director
from actors.opening import first_event
from actors.providers.port import Completion, ProviderError, Question
from actors.roles import RoleActor
from actors.virtual_mailbox import VirtualMailbox
from decisions.audit import audit
from decisions.brief import brief
from events.blobs import Blobs
from events.campaign import Acceptance, Campaign, Model, Roles, Search
from events.errors import LogError
from events.log import EventLog, read
from events.projections.state import State
from events.vocabulary import FactProposed, RoleReplied, Summary, TurnAssigned, TurnDropped, Usage
from scripts.reporting.beliefs import documents
from scripts.reporting.history import load
from scripts.reporting.page import render
from sim.clock import VirtualClock
from targets.protocol import Document
from targets.sim.card import manual
from targets.sim.target import SimTarget
from tests.support.author import known

KERNEL = "sliding_attention_output"
ERRORS = {
    "| VRF | 8,192 |": "| VRF | 16,384 |",
    "| fetch, commit | 32 bytes on main, 8 on sub |": (
        "| fetch, commit | 32 bytes on main, 32 on sub |"
    ),
    "or f8e4m3 to bf16; main only.": "or f8e4m3 to bf16; main or sub.",
    "| `exp`, `erf` or `rsqrt` | |": "| `exp`, `erf`, `rsqrt` or `sqrt` | |",
    "`lanes n` behind a commit to TRF (1, 2, 4, 8) spreads": (
        "`lanes n` behind a commit to TRF (1, 2, 4, 8, 16) spreads"
    ),
}
"""What the manual says, and what the document says instead."""


def planted() -> str:
    """The manual with the five errors."""
    text = manual()
    for right, wrong in ERRORS.items():
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return text


def baseline() -> str:
    return files("targets.sim").joinpath("kernels", f"{KERNEL}_baseline.npu").read_text("utf-8")


HEAD = baseline().partition("\n# x in every slice")[0]


def program(*lines: str) -> str:
    """A source of the kernel's signature."""
    return "<source>\n" + HEAD + "".join(f"{line}\n" for line in lines) + "</source>"


def claim(says: str, quote: str, probe: str = "") -> str:
    return f"<claim><says>{says}</says><quote>{quote}</quote>{probe}</claim>"


def builds(*lines: str) -> str:
    return f'<probe predicts="builds">{program(*lines)}</probe>'


def refused(signature: str, *lines: str) -> str:
    return f'<probe predicts="refused" signature="{signature}">{program(*lines)}</probe>'


def costs(high: int, *lines: str) -> str:
    """At most so many static cycles."""
    return f'<probe predicts="costs" high="{high}">{program(*lines)}</probe>'


LOADED = "load x0 from x to head"
WRONG = {
    "VRF holds 16,384 bytes in a slice.": (
        "| VRF | 16,384 |",
        builds(LOADED, "a = sub x0 | commit vrf"),
    ),
    "Two passes on sub take no longer than on main.": (
        "32 bytes on main, 32 on sub",
        costs(2700, LOADED, "a = sub x0 | commit dm bf16", "b = sub a | commit dm bf16"),
    ),
    "sub decodes by table too.": (
        "or f8e4m3 to bf16; main or sub.",
        builds("load w from wo[0] to head", "a = sub w | lookup bf16 | commit dm bf16"),
    ),
    "A vector stage takes square roots.": (
        "| `exp`, `erf`, `rsqrt` or `sqrt` | |",
        builds(LOADED, "a = main x0 | sqrt | commit dm bf16"),
    ),
    "An operand in TRF may be spread over 16 lanes.": (
        "(1, 2, 4, 8, 16)",
        builds(LOADED, "a = main x0 | commit trf bf16 lanes 16"),
    ),
}
"""Claims as the document has them, with quote and probe: none is so."""
TRUE = {
    "An operand in TRF may be spread over 8 lanes.": (
        "spreads the operand over n lanes",
        builds(LOADED, "a = main x0 | commit trf bf16 lanes 8"),
    ),
    "The slices of a placement are 64, 128 or 256, not 32.": (
        "The product of the slice factors is 64, 128 or 256",
        refused("E-SLICES-SPAN", "place few = cluster one, slices copy:32"),
    ),
    "TRF is filled from main alone.": (
        "used from main",
        refused("E-TRF-SUB", LOADED, "a = sub x0 | commit trf bf16"),
    ),
    "How many tiles a loop has changes no value.": (
        "covers whole\ntensors and never changes a value",
        '<probe predicts="computes"><edit><search>0..15</search><replace>0..5</replace></edit>'
        "</probe>",
    ),
    "Two passes on main take some 800 cycles after the load.": (
        "a fixed cost (about 140)",
        costs(2700, LOADED, "a = main x0 | commit dm bf16", "b = main a | commit dm bf16"),
    ),
    "A tensor on chip is written once.": (
        "A tensor on chip is written by one statement",
        refused("E-REDEFINED", LOADED, LOADED),
    ),
}
UNTESTED = {
    "DMA works beside the tensor unit.": ("one command after the other, beside everything", ""),
    "Its probe cannot be made.": (
        "All arithmetic is f32",
        '<probe predicts="builds"><edit><search>no such text</search><replace>x</replace></edit>'
        "</probe>",
    ),
}
NOT_SAID = (
    "<claim><says>It has no quote.</says></claim>",
    claim("Its quote is made up.", "the device has 4 clusters of 1,024 slices"),
    claim("Its quote says nothing.", "The"),
)


READER = Model(provider="command", command=("reader",))


class Reader:
    """A model of mixed quality: it errs, it stalls, it makes up quotes; it doubts nothing."""

    name = "command:reader"

    def complete(self, question: Question) -> Completion:
        """Answer with the claims whose quotes the passage has."""
        prompt = question.prompt
        if question.ask.task != "summarize":
            return self._said("<nothing>it only reads</nothing>")
        passage = prompt.partition("\n# Passage of")[2].partition("\n# Your last reply")[0]
        if NOTES.text in passage:
            raise ProviderError("no reply after 300 s", n_calls=1)
        if "# Your last reply" not in prompt:
            if "## 3." in passage:
                return self._said("The passage says <claim>many things.")
            if "## 4." in passage:
                return self._said("\n".join(NOT_SAID))
        return self._said("\n".join([*self._claims(passage), *NOT_SAID]))

    def _claims(self, passage: str) -> Iterator[str]:
        for says, (quote, probe) in {**WRONG, **TRUE, **UNTESTED}.items():
            if quote in passage:
                yield claim(says, quote, probe)

    def _said(self, text: str) -> Completion:
        return Completion(text, Usage(tokens_in=1000, tokens_out=100), n_calls=1)


NOTES = Document("notes", "Version 1.0 is the first one.\n")


class PlantedTarget(SimTarget):
    """The simulated NPU with a manual that is not right."""

    def documents(self) -> tuple[Document, ...]:
        """The manual with the five errors."""
        return (Document("The NPU and its language", planted()),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run in which an analyst reads the manual."""
    run = tmp_path_factory.mktemp("planted") / "run"
    target, clock = PlantedTarget("quiet"), VirtualClock()
    target.clock = clock
    campaign = Campaign(
        name="planted",
        target="sim",
        preset="quiet",
        kernels=(KERNEL,),
        search=Search(max_candidates=1),
        acceptance=Acceptance(pairs_per_job=1, noise_pairs=4, final_pairs=6),
        models={"default": Model(), "reader": READER},
        roles=Roles(analyst=("reader",)),
    )
    actors = crew(target, run / "lease", {}, clock)
    reader = Reader()
    actors["analyst"] = RoleActor("analyst", target, lambda model: reader, clock)
    with EventLog.open(run, clock.time_ns) as log:
        boss = Director(log, Blobs(run), VirtualMailbox(actors, clock))
        first = first_event(
            campaign,
            target,
            Blobs(run),
            secret_seed="7" * 64,
            versions={},
            documents=(NOTES,),
            prices=known(campaign),
        )
        boss.start(first)
        assert boss.run().finished
    return run


@pytest.fixture(scope="module")
def state(folder: Path) -> State:
    """At its end."""
    state = State()
    for record in read(folder):
        state.apply(record)
    return state


def believed(state: State) -> dict[str, str]:
    """What is believed of each claim of the document."""
    knowledge = state.knowledge
    return {
        fact.claim: knowledge.states[n]
        for n, fact in knowledge.facts.items()
        if isinstance(fact, FactProposed)
    }


def test_the_five_errors_are_refuted_and_what_is_true_is_confirmed(state: State) -> None:
    """What no probe can tell stays marked as untested."""
    expected = {
        **dict.fromkeys(WRONG, "refuted"),
        **dict.fromkeys(TRUE, "confirmed"),
        **dict.fromkeys(UNTESTED, "proposed"),
    }

    assert believed(state) == expected


def test_a_claim_that_the_passage_does_not_make_is_no_fact(folder: Path) -> None:
    """Why it is not among them is recorded with the reply."""
    outcomes = [r.event.outcome for r in read(folder) if isinstance(r.event, RoleReplied)]
    dropped = [
        why for outcome in outcomes if isinstance(outcome, Summary) for why in outcome.dropped
    ]

    for why in (
        "<quote> is missing",
        "its quote is not in the passage: 'the device has 4 clusters",
        "its quote has fewer than 12 characters",
        "its probe: edit 1: <search> starting 'no such text' is found at 0 sites",
    ):
        assert any(why in said for said in dropped), why


def test_every_passage_is_read_once_and_a_bad_reply_costs_one_more_turn(folder: Path) -> None:
    """A reply that cannot be used is repaired; one that does not come is a recorded failure."""
    records = list(read(folder))
    asked = [r.event for r in records if isinstance(r.event, TurnAssigned) and r.event.passage]
    reasons = [r.event.reason for r in records if isinstance(r.event, TurnDropped)]
    start = records[0].event
    assert start.kind == "run_started"
    texts = [
        "".join(Blobs(folder).get(passage).decode() for passage in document.passages)
        for document in start.documents
    ]

    assert texts == [planted(), NOTES.text]
    assert [turn.passage for turn in asked if turn.attempt == 0] == [
        passage for document in start.documents for passage in document.passages
    ]
    unclosed, unusable = [turn.complaint or "" for turn in asked if turn.attempt]
    assert unclosed == "<claim> is not closed; end it with </claim>"
    assert unusable.startswith("no claim can be used: claim 1: <quote> is missing")
    assert "no reply after 300 s" in reasons


def test_prompts_tell_what_holds_before_what_does_not(state: State, folder: Path) -> None:
    """A refuted claim is a warning; it comes last."""
    turn = next(r.event for r in read(folder) if isinstance(r.event, TurnAssigned))
    facts = brief(state, turn).facts
    states = [fact.state for fact in facts]

    assert {fact.claim for fact in facts if fact.state == "refuted"} == set(WRONG)
    assert set(TRUE) <= {fact.claim for fact in facts if fact.state == "confirmed"}
    assert states == sorted(states, key=("confirmed", "stale", "proposed", "refuted").index)


def test_audit_reads_the_replies_again(folder: Path) -> None:
    """Claims, quotes and probes follow from the recorded reply and passage alone."""
    assert list(audit(read(folder), Blobs(folder).get, LogError)) == []


def test_the_report_tells_which_share_of_a_document_was_refuted(folder: Path) -> None:
    """Whoever wrote the document wants to know; notes in which nothing was read are there too."""
    manual_read, notes_read = documents(load(folder))

    n_checked = len(WRONG) + len(TRUE)
    assert manual_read.n_claims == n_checked + len(UNTESTED)
    assert (manual_read.n_checked, manual_read.n_refuted) == (n_checked, len(WRONG))
    assert (notes_read.title, notes_read.n_claims) == (NOTES.title, 0)
    said = render(load(folder), Blobs(folder)).partition('aria-label="Claims by document"')[2]
    row = f"<td>{n_checked + len(UNTESTED)}</td><td>{n_checked}</td>"
    assert row in said.partition("</table>")[0]
