"""The roles' desk: turns, the threads that they form, and what analysts said."""

from dataclasses import dataclass, field
from typing import Literal

from events.vocabulary import (
    Analysis,
    CandidateId,
    CandidateProposed,
    DesignPlan,
    Draft,
    Nothing,
    Record,
    RoleReplied,
    RunStarted,
    Sha,
    TurnAssigned,
    TurnDropped,
    TurnFailed,
    WorkAbandoned,
)


@dataclass
class Thread:
    """One chain of turns that should end in a candidate (or an analysis)."""

    thread: int
    kernel: str
    turn: TurnAssigned
    """The last turn."""
    turn_seq: int
    form: Literal["design", "step"]
    draft: Draft | None = None
    draft_seq: int | None = None
    draft_reply: Sha | None = None
    """The reply that the draft was read from."""
    author: str = ""
    """Who wrote the draft: ``role/provider``."""
    reply: RoleReplied | TurnFailed | None = None
    """The last turn's reply, if nobody has decided about it."""
    reply_seq: int = -1


@dataclass
class KernelDesk:
    """What the roles have said about one kernel."""

    analyses: dict[CandidateId, Analysis | None] = field(default_factory=dict)
    """Per incumbent; None if the analyst could not tell."""
    no_designs: dict[CandidateId, None] = field(default_factory=dict)
    """Incumbents for which the architect had nothing more."""
    no_steps: dict[CandidateId, None] = field(default_factory=dict)
    """Incumbents on which the optimizer has nothing more."""
    failures: int = 0
    """Threads in a row that ended without a candidate."""
    last_failure: str = ""
    """Why the last of them did."""
    moves: list[str] = field(default_factory=list)
    """Moves of designs and, as ``<incumbent>|<move>``, of steps, in order."""


@dataclass
class Desk:
    """All turns of a run."""

    n_turns: int = 0
    threads: dict[int, Thread] = field(default_factory=dict)
    """Open threads."""
    replied: dict[int, None] = field(default_factory=dict)
    """Threads whose last reply waits for a decision."""
    kernels: dict[str, KernelDesk] = field(default_factory=dict)

    def of(self, kernel: str) -> KernelDesk:
        """The desk of one kernel; reading makes none, or decisions would change the state."""
        return self.kernels[kernel]

    def apply(self, record: Record) -> None:
        """Take in one record."""
        match record.event:
            case RunStarted(campaign=campaign):
                self.kernels = {kernel: KernelDesk() for kernel in campaign.kernels}
            case TurnAssigned() as event:
                self._assign(event, record.seq)
            case RoleReplied() | TurnFailed() as event:
                self._reply(event, record.seq)
            case CandidateProposed(rebased_from=int()) as event:
                self.of(event.kernel).moves.append(f"{event.parent}|{event.move}")
            case CandidateProposed(turn=int() as turn) as event:
                self._end(turn)
                self.of(event.kernel).failures = 0
            case TurnDropped(turn=turn, reason=why) | WorkAbandoned(turn=int() as turn, reason=why):
                self._drop(turn, why)
            case _:
                pass

    def _assign(self, event: TurnAssigned, seq: int) -> None:
        self.n_turns = max(self.n_turns, event.turn)
        known = self.threads.get(event.thread)
        if known is None:
            form: Literal["design", "step"] = "design" if event.task == "design" else "step"
            self.threads[event.thread] = Thread(event.thread, event.kernel, event, seq, form)
            return
        known.turn, known.turn_seq, known.reply = event, seq, None
        self.replied.pop(event.thread, None)

    def _reply(self, event: RoleReplied | TurnFailed, seq: int) -> None:
        thread = next(t for t in self.threads.values() if t.turn.turn == event.turn)
        thread.reply, thread.reply_seq = event, seq
        self.replied[thread.thread] = None
        if not isinstance(event, RoleReplied):
            return
        desk = self.of(thread.kernel)
        match event.outcome:
            case Draft() as draft:
                thread.draft, thread.draft_seq, thread.draft_reply = draft, seq, event.reply
                thread.author = f"{thread.turn.role}/{event.provider}"
            case Analysis() as analysis:
                desk.analyses[thread.turn.parent] = analysis
            case Nothing() if thread.turn.task == "design":
                desk.no_designs[thread.turn.parent] = None
            case Nothing() if thread.turn.task == "step":
                desk.no_steps[thread.turn.parent] = None
            case Nothing() if thread.turn.task == "analyse":
                desk.analyses[thread.turn.parent] = None
            case _:
                pass
        if isinstance(event.outcome, DesignPlan) and event.outcome.move:
            desk.moves.append(event.outcome.move)
        if isinstance(event.outcome, Draft) and thread.turn.task == "step" and event.outcome.move:
            desk.moves.append(f"{thread.turn.parent}|{event.outcome.move}")

    def _drop(self, turn: int, reason: str) -> None:
        thread = self._end(turn)
        reply = thread.reply
        done = isinstance(reply, RoleReplied) and isinstance(reply.outcome, Nothing)
        if not done or thread.turn.task not in ("design", "step"):
            desk = self.of(thread.kernel)
            desk.failures, desk.last_failure = desk.failures + 1, reason

    def _end(self, turn: int) -> Thread:
        thread = next(t for t in self.threads.values() if t.turn.turn == turn)
        del self.threads[thread.thread]
        self.replied.pop(thread.thread, None)
        return thread
