"""Who is asked next, whatever was answered."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from actors.providers.port import Completion, Question
from decisions.device import weight
from decisions.room import in_flight, is_full
from decisions.turns import cannot_ask, wanted
from events.blobs import Blobs
from events.campaign import RoleName
from events.log import read
from events.projections.state import State
from events.vocabulary import (
    CandidateProposed,
    CandidateScreened,
    Designs,
    RoleReplied,
    TurnAssigned,
    TurnDropped,
    Usage,
)
from scripts import audit
from targets.protocol import Ask
from tests.support.author import Author, authored, drawn, written
from tests.support.fake_target import FakeCatalogue, FakeTarget, facts_of
from tests.support.runs import begin, campaign

DESIGNERS: tuple[RoleName, ...] = ("architect", "implementer")


class SilentAnalyst(FakeCatalogue):
    """A catalogue whose analyst never can tell."""

    def reply(self, ask: Ask) -> str:
        """Answer, or not."""
        return "<nothing>no idea</nothing>" if ask.task == "analyse" else super().reply(ask)


class Stubborn(Author):
    """An author whose repairs have the same fault, in other words."""

    def implement(self, prompt: str, ask: Ask) -> str:
        """The source of a plan, with a new word in it."""
        source = f"time 0.1\nbroken {len(self.prompts)}\n"
        return f"<hypothesis>{ask.plan}</hypothesis><source>\n{source}</source>"


class OneIdea(Author):
    """An optimizer with another source every time, and always the same words for it."""

    name = "command:author"

    def complete(self, question: Question) -> Completion:
        """Turn the knob to a value that it never had."""
        self.prompts.append(question.prompt)
        now = facts_of(question.ask.incumbent_source)["knob"]
        knob = f"knob {now}\n"
        edit = f"<search>{knob}</search><replace>{knob}lap {len(self.prompts)}\n</replace>"
        text = f"<hypothesis>One more lap is faster.</hypothesis><edit>{edit}</edit>"
        return Completion(text, Usage(tokens_in=100, tokens_out=10), 1)


class SameDesigns(Author):
    """An architect that draws one design twice."""

    def design(self, ask: Ask) -> str:
        """Two plans for one idea."""
        return drawn("half") + drawn("half").replace("<plan>half", "<plan>twin")


def assigned(run: Path) -> Iterator[tuple[State, TurnAssigned]]:
    """Every turn with the state in which it was assigned."""
    state = State()
    for record in read(run):
        if isinstance(record.event, TurnAssigned):
            yield state, record.event
        state.apply(record)


def test_an_analyst_who_cannot_tell_is_asked_once_and_steps_go_on(tmp_path: Path) -> None:
    """The prompt allows that answer, so it must not end the search."""
    target = FakeTarget()
    target.catalogue = SilentAnalyst()
    state = begin(tmp_path, campaign(max_candidates=40), target)
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]
    asked = [(t.kernel, t.parent) for t in turns if t.task == "analyse"]

    assert asked
    assert len(asked) == len(set(asked))
    assert state.finished is not None
    assert all(branch.n_steps > 0 for branch in state.tree.branches.values())


def test_every_design_of_a_reply_gets_its_implementer(tmp_path: Path) -> None:
    """The last one goes on in the architect's thread, as if it were the only one."""
    written(tmp_path, authored(*DESIGNERS, max_candidates=20), Author(), *DESIGNERS)
    events = [record.event for record in read(tmp_path)]
    plans = [
        design.plan
        for event in events
        if isinstance(event, RoleReplied) and isinstance(event.outcome, Designs)
        for design in event.outcome.designs
    ]
    turns = [e for e in events if isinstance(e, TurnAssigned) and e.task == "implement"]
    begun = [turn for turn in turns if turn.repairs is None]

    assert len(plans) > 6
    assert Counter(turn.plan for turn in begun) == Counter(plans)
    assert {turn.thread == turn.turn for turn in begun if turn.architect} == {True}
    assert audit.main([str(tmp_path)]) == 0


def test_designs_wait_for_room(tmp_path: Path) -> None:
    """An architect may have more ideas at once than the campaign has room for, even for one."""
    settings = authored(*DESIGNERS, max_candidates=12, in_flight=1)
    state = written(tmp_path, settings, Author(), *DESIGNERS)

    for was, turn in assigned(tmp_path):
        if turn.architect is not None or turn.repairs is not None:
            assert in_flight(was, turn.kernel) < 1
    assert state.tree.n_search == 12


def test_a_refused_source_returns_to_its_author_with_the_diagnostics(tmp_path: Path) -> None:
    """What comes back is another candidate of the same design."""
    author = Author()
    state = written(tmp_path, authored("implementer", max_candidates=20), author, "implementer")
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]
    repairs = {turn.repairs: turn for turn in turns if turn.repairs is not None}
    refused = {
        record.event.candidate: record.event
        for record in read(tmp_path)
        if isinstance(record.event, CandidateScreened) and not record.event.passed
    }
    blobs = Blobs(tmp_path)

    assert {event.stage for c, event in refused.items() if c in repairs} == {"build", "correctness"}
    for candidate, turn in repairs.items():
        stage = refused[candidate].stage
        assert turn.draft == state.tree.nodes[candidate].source
        assert (turn.diagnostics is not None) == (stage == "build")
        assert any(f"refused at {stage}: {refused[candidate].reason}" in p for p in author.prompts)
    assert blobs.text(next(t.diagnostics for t in repairs.values() if t.diagnostics)) == (
        "line 2: broken"
    )
    proposals = [r.event for r in read(tmp_path) if isinstance(r.event, CandidateProposed)]
    assert {p.repairs for p in proposals if p.repairs} == set(repairs)
    assert audit.main([str(tmp_path)]) == 0


def test_an_author_who_does_not_get_it_right_is_asked_as_often_as_allowed(tmp_path: Path) -> None:
    """And a repair is not another design."""
    settings = authored("implementer", max_candidates=40, max_designs=3, repairs=2)
    state = written(tmp_path, settings, Stubborn(), "implementer")
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]
    chains = Counter(turn.plan for turn in turns if turn.task == "implement")

    assert {turn.attempt for turn in turns if turn.task == "implement"} == {0, 1, 2}
    assert set(chains.values()) == {2 * 3}  # of both kernels
    assert {b.n_designs - b.n_repaired for b in state.tree.branches.values()} == {3}


def test_a_catalogue_is_not_asked_to_repair(tmp_path: Path) -> None:
    """It would say the same again."""
    state = begin(tmp_path, campaign(max_candidates=24))
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]

    assert any(node.reason.startswith("refused at build") for node in state.tree.nodes.values())
    assert not any(turn.repairs for turn in turns)


def test_an_idea_that_was_had_is_answered_with_its_verdict(tmp_path: Path) -> None:
    """Once; who has it again gets no candidate. On another best version it is another question."""
    settings = authored("optimizer", max_candidates=40)
    written(tmp_path, settings, OneIdea(), "optimizer")
    events = [record.event for record in read(tmp_path)]
    answered = [e for e in events if isinstance(e, TurnAssigned) and e.complaint]
    dropped = [e.reason for e in events if isinstance(e, TurnDropped)]
    proposed = [e for e in events if isinstance(e, CandidateProposed) and e.form == "step"]
    steps = [step for step in proposed if step.rebased_from is None]

    assert "was this idea: One more lap is faster. -> " in (answered[0].complaint or "")
    assert any(reason.startswith("cannot be used after repair: c") for reason in dropped)
    assert len(steps) == len({(step.kernel, step.parent) for step in steps})
    assert audit.main([str(tmp_path)]) == 0


def test_one_idea_in_two_designs_is_built_once(tmp_path: Path) -> None:
    """An architect has to differ in kind, from itself too."""
    settings = authored("architect", max_candidates=2, max_designs=2)
    written(tmp_path, settings, SameDesigns(), "architect")
    turns = [r.event for r in read(tmp_path) if isinstance(r.event, TurnAssigned)]
    reasons = {turn.reasons for turn in turns if turn.task == "implement"}

    assert reasons == {"design 1 of 2, 1 of them repeat earlier ones"}


def test_the_kernel_with_the_least_on_its_way_for_its_gain_is_next(tmp_path: Path) -> None:
    """None starves: one with nothing on its way goes before all that have something."""
    begin(tmp_path, campaign(max_candidates=40))
    choices = 0
    for state, turn in assigned(tmp_path):
        if turn.thread != turn.turn:
            continue
        loads = {k: in_flight(state, k) / weight(state, k) for k in state.tree.branches}
        for kernel, load in loads.items():
            task = None if is_full(state, kernel) else wanted(state, kernel)
            if load < loads[turn.kernel] and task and not cannot_ask(state, task):
                thinks = any(
                    thread.kernel == kernel and thread.turn.task in ("design", "analyse", "step")
                    for thread in state.desk.threads.values()
                )
                assert thinks, f"{kernel} was passed over for {turn.kernel}"
        choices += len(loads) > 1
        assert f"for a weight of {weight(state, turn.kernel):.2f}" in turn.reasons

    assert choices > 10
