"""The roles' desk: turns, the threads that they form, and what analysts said."""

from dataclasses import dataclass, field, replace
from typing import Literal

from events.vocabulary import (
    Analysis,
    CandidateId,
    CandidateProposed,
    CandidateScreened,
    DesignPlan,
    Designs,
    Draft,
    Nothing,
    OperatorHinted,
    RoleReplied,
    Sha,
    TurnAssigned,
    TurnFailed,
)

MAX_HINTS = 3
"""Latest hints of a kernel that its prompts show."""


@dataclass(slots=True)
class Thread:
    """One chain of turns that should end in a candidate (or an analysis)."""

    thread: int
    kernel: str
    turn: TurnAssigned
    """The last turn."""
    turn_seq: int
    form: Literal["design", "step"]
    design: DesignPlan | None = None
    """What its source is to be, once an implementer has it."""
    handed_out: tuple[Sha, ...] = ()
    """Plans of its architect that got a thread of their own."""
    draft: Draft | None = None
    draft_seq: int | None = None
    draft_turn: TurnAssigned | None = None
    """The turn that the draft was read from."""
    draft_reply: Sha | None = None
    """The reply that the draft was read from."""
    author: str = ""
    """Who wrote the draft: ``role/provider``."""
    models: dict[str, str] = field(default_factory=dict)
    """The models that have answered in it, by role."""
    reply: RoleReplied | TurnFailed | None = None
    """The last turn's reply, if nobody has decided about it."""
    reply_seq: int = -1

    @property
    def designs(self) -> tuple[DesignPlan, ...]:
        """Designs that wait for an implementer."""
        outcome = self.reply.outcome if isinstance(self.reply, RoleReplied) else None
        return outcome.designs if type(outcome) is Designs else ()


@dataclass(frozen=True, slots=True)
class Written:
    """A design's source in screening, written by a model, which may be asked to repair it."""

    turn: TurnAssigned
    """The implementer's."""
    design: DesignPlan
    models: dict[str, str]
    """As of `Thread`."""
    refused: int | None = None
    """Record of its refusal."""
    diagnostics: Sha | None = None
    """Of its build, if that was why."""


@dataclass(slots=True)
class KernelDesk:
    """What the roles have said about one kernel."""

    analyses: dict[CandidateId, Analysis | None] = field(default_factory=dict)
    """Per incumbent that is or was a parent of open threads; None if the analyst could not tell."""
    analysed: dict[CandidateId, int] = field(default_factory=dict)
    """Records of these analyses."""
    no_designs: dict[CandidateId, None] = field(default_factory=dict)
    """Incumbents for which the architect had nothing more."""
    no_steps: dict[CandidateId, None] = field(default_factory=dict)
    """Incumbents on which the optimizer has nothing more."""
    failures: int = 0
    """Threads in a row that ended without a candidate."""
    last_failure: str = ""
    """Why the last of them did."""
    ideas: dict[CandidateId, str] = field(default_factory=dict)
    """Hypotheses of architects whose designs became candidates."""
    designs: list[str] = field(default_factory=list)
    """Moves of designs, in order."""
    steps: dict[CandidateId, list[str]] = field(default_factory=dict)
    """Moves of steps, in order, by the best version that they were tried on; not those of
    replaced versions."""
    asked: dict[str, int] = field(default_factory=dict)
    """Turns by task."""
    hints: dict[int, str] = field(default_factory=dict)
    """What the operator said, the latest `MAX_HINTS`, by their numbers."""

    def outdate(self) -> None:
        """Take in that the toolchain has changed: what was tried may come out otherwise now."""
        self.no_designs.clear()
        self.no_steps.clear()
        self.designs.clear()
        self.steps.clear()

    def note_nothing(self, turn: TurnAssigned) -> None:
        """A role had nothing to say about an incumbent."""
        match turn.task:
            case "design":
                self.no_designs[turn.parent] = None
            case "step":
                self.no_steps[turn.parent] = None
            case "analyse":
                self.analyses[turn.parent] = None
            case "implement" | "review" | "summarize":
                pass


@dataclass(slots=True)
class Desk:
    """All turns of a run."""

    n_turns: int = 0
    n_hints: int = 0
    threads: dict[int, Thread] = field(default_factory=dict)
    """Open threads."""
    turns: dict[int, int] = field(default_factory=dict)
    """Open threads by their last turn."""
    replied: dict[int, None] = field(default_factory=dict)
    """Threads whose last reply waits for a decision."""
    kernels: dict[str, KernelDesk] = field(default_factory=dict)
    written: dict[CandidateId, Written] = field(default_factory=dict)
    """Sources in screening that their author may repair."""
    refused: dict[CandidateId, Written] = field(default_factory=dict)
    """Those that were refused and are not being repaired."""

    def of(self, kernel: str) -> KernelDesk:
        """The desk of one kernel; reading makes none, or decisions would change the state."""
        return self.kernels[kernel]

    def start(self, kernels: tuple[str, ...]) -> None:
        """A run begins with these kernels."""
        self.kernels = {kernel: KernelDesk() for kernel in kernels}

    def outdate(self) -> None:
        """Take in that the toolchain has changed: what it refused is no fault any more."""
        self.refused.clear()
        for desk in self.kernels.values():
            desk.outdate()

    def hint(self, event: OperatorHinted) -> None:
        """The operator says something about a kernel; its oldest hint may have to go for it."""
        self.n_hints += 1
        hints = self.of(event.kernel).hints
        hints[self.n_hints] = event.text
        if len(hints) > MAX_HINTS:
            del hints[min(hints)]

    def count(self, event: TurnAssigned) -> None:
        """A turn has its numbers; one that is issued again keeps them."""
        self.n_turns = max(self.n_turns, event.turn)
        asked = self.of(event.kernel).asked
        asked[event.task] = max(asked.get(event.task, 0), event.nth)

    def assign(self, event: TurnAssigned, seq: int) -> None:
        """A role is asked: a thread begins or goes on."""
        turn, number = event.turn, event.thread
        self.count(event)
        thread = self.threads.get(number)
        if thread is None:
            form: Literal["design", "step"] = (
                "design" if event.task in ("design", "implement") else "step"
            )
            design, models = self._taken_over(event)
            thread = Thread(number, event.kernel, event, seq, form, design, models=models)
            self.threads[number] = thread
        else:
            self.turns.pop(thread.turn.turn, None)
            self.replied.pop(number, None)
            if event.task == "implement" and thread.design is None:
                thread.design = _of_plan(thread, event.plan)
            thread.turn, thread.turn_seq, thread.reply = event, seq, None
        self.turns[turn] = number

    def _taken_over(self, event: TurnAssigned) -> tuple[DesignPlan | None, dict[str, str]]:
        """What a new thread takes over: a design, and who has answered for it so far."""
        if event.repairs is not None:
            refused = self.refused.pop(event.repairs)
            return refused.design, dict(refused.models)
        if event.architect is None:
            return None, {}
        architect = self.threads[self.turns[event.architect]]
        design = _of_plan(architect, event.plan)
        architect.handed_out += (design.plan,)
        return design, dict(architect.models)

    def reply(self, event: RoleReplied, seq: int) -> TurnAssigned:
        """A role has answered; return what it was asked."""
        thread = self._answered(event, seq)
        thread.models[thread.turn.role] = thread.turn.model
        desk, outcome = self.of(thread.kernel), event.outcome
        # `isinstance` of a pydantic model is slow where it says no.
        if type(outcome) is Designs:
            desk.designs += [design.move for design in outcome.designs if design.move]
        elif type(outcome) is Draft:
            thread.draft, thread.draft_seq, thread.draft_reply = outcome, seq, event.reply
            thread.draft_turn = thread.turn
            thread.author = f"{thread.turn.role}/{event.provider}"
            if thread.turn.task == "step" and outcome.move:
                desk.steps.setdefault(thread.turn.parent, []).append(outcome.move)
        elif type(outcome) is Analysis:
            desk.analyses[thread.turn.parent] = outcome
            desk.analysed[thread.turn.parent] = seq
        elif type(outcome) is Nothing:
            desk.note_nothing(thread.turn)
        return thread.turn

    def fail(self, event: TurnFailed, seq: int) -> TurnAssigned:
        """A role gave no reply; return what it was asked."""
        return self._answered(event, seq).turn

    def propose(self, event: CandidateProposed) -> None:
        """A thread has ended in a candidate, or a step is tried on a new best version."""
        if event.rebased_from is not None:
            if event.parent is not None and event.move:
                self.of(event.kernel).steps.setdefault(event.parent, []).append(event.move)
        elif event.turn is not None:
            thread = self._end(event.turn)
            desk = self.of(event.kernel)
            desk.failures = 0
            by_catalogue = thread.author.endswith("/catalogue")
            if thread.design is not None and thread.draft_turn is not None and not by_catalogue:
                desk.ideas[event.candidate] = thread.design.hypothesis
                self.written[event.candidate] = Written(
                    thread.draft_turn, thread.design, thread.models
                )

    def screen(self, event: CandidateScreened, diagnostics: Sha | None, seq: int) -> None:
        """A candidate may be measured, or not; one that exists already is not repaired."""
        written = self.written.pop(event.candidate, None)
        if written is not None and not event.passed and event.stage != "duplicate":
            refused = replace(written, refused=seq, diagnostics=diagnostics)
            self.refused[event.candidate] = refused

    def forget(self, candidate: CandidateId) -> None:
        """A candidate was given up, or vetoed: nobody repairs it."""
        self.written.pop(candidate, None)
        self.refused.pop(candidate, None)

    def drop(self, turn: int, reason: str) -> None:
        """A thread has ended without a candidate."""
        thread = self._end(turn)
        reply = thread.reply
        done = isinstance(reply, RoleReplied) and isinstance(reply.outcome, Nothing)
        if not done or thread.turn.task not in ("design", "step"):
            desk = self.of(thread.kernel)
            desk.failures, desk.last_failure = desk.failures + 1, reason

    def replace(self, kernel: str, incumbent: CandidateId) -> None:
        """A best version was replaced: only threads that began on it are still told of it."""
        desk = self.of(kernel)
        desk.steps.pop(incumbent, None)
        parents = {thread.turn.parent for thread in self.threads.values()}
        desk.analyses = {c: said for c, said in desk.analyses.items() if c in parents}
        desk.analysed = {c: seq for c, seq in desk.analysed.items() if c in parents}

    def _answered(self, event: RoleReplied | TurnFailed, seq: int) -> Thread:
        thread = self.threads[self.turns[event.turn]]
        thread.reply, thread.reply_seq = event, seq
        self.replied[thread.thread] = None
        return thread

    def _end(self, turn: int) -> Thread:
        thread = self.threads.pop(self.turns.pop(turn))
        self.replied.pop(thread.thread, None)
        return thread


def _of_plan(architect: Thread, plan: Sha | None) -> DesignPlan:
    """The design of an architect's reply that has this plan.

    Raises:
        LookupError: there is none.
    """
    for design in architect.designs:
        if design.plan == plan:
            return design
    raise LookupError(f"thread {architect.thread} has no design with the plan {plan}")
