"""Who is asked next: the threads of role turns that end in a candidate.

A design: architect, implementer, reviewer; each design of a reply has its own implementer. A step:
analyst (once per best version), optimizer, reviewer. A reply that cannot be used is answered with
the exact complaint, an idea that was had before with its verdict, and a source that screening
refuses with the diagnostics, as often as the campaign allows.
"""

from collections.abc import Mapping

from decisions import models
from decisions.designs import choose
from decisions.device import weight
from decisions.due import Due
from decisions.repeats import earlier_verdict
from decisions.room import designs_left, in_flight, is_full, remaining
from events.campaign import RoleName
from events.projections.desk import Thread
from events.projections.state import State
from events.projections.tree import Node
from events.vocabulary import (
    Analysis,
    CandidateProposed,
    Complaint,
    Designs,
    Draft,
    Nothing,
    Review,
    RoleReplied,
    Sha,
    Summary,
    Task,
    TurnAssigned,
    TurnDropped,
    TurnFailed,
)

MAX_FAILURES = 12
"""Threads in a row without a candidate after which a kernel is no longer asked about."""
TASKS: Mapping[Task, RoleName] = {
    "design": "architect",
    "implement": "implementer",
    "analyse": "analyst",
    "step": "optimizer",
    "review": "reviewer",
    "summarize": "analyst",
}
THINKING = ("design", "analyse", "step")
"""Tasks that look at what was tried: one of them per kernel at a time, so that none repeats."""


def proceed(state: State) -> Due | None:
    """Take the next step of a thread whose last turn has a reply.

    One whose models are all busy waits; a turn that they are busy with is on its way.
    """
    for number in state.desk.replied:
        thread = state.desk.threads[number]
        because = (thread.reply_seq,)
        if state.closed:
            return _drop(thread, "the search is closed", because)
        best = state.tree.branches[thread.kernel].incumbent
        if thread.form == "step" and thread.turn.parent != best:
            return _drop(thread, f"c{best} has replaced c{thread.turn.parent}", because)
        match thread.reply:
            case TurnFailed(reason=reason):
                return _drop(thread, reason, because)
            case RoleReplied() as reply:
                if due := _answer(state, thread, reply, because):
                    return due
            case None:
                raise LookupError(f"thread {number} has no reply")
    return None


def _answer(
    state: State, thread: Thread, reply: RoleReplied, because: tuple[int, ...]
) -> Due | None:
    match reply.outcome:
        case Designs():
            return _hand_out(state, thread, reply, because)
        case Analysis() | Nothing() if thread.turn.task == "analyse":
            return _next(state, thread, "step", because)
        case Draft(source=source, hypothesis=hypothesis):
            is_new_idea = thread.turn.task == "step" and reply.provider != "catalogue"
            if is_new_idea and (verdict := earlier_verdict(state, thread, hypothesis)):
                return _unusable(state, thread, reply, verdict, because)
            return _next(state, thread, "review", because, draft=source)
        case Review(go=True):
            return _propose(state, thread, because)
        case Review(reason=reason):
            return _drop(thread, f"the reviewer said stop: {reason}", because)
        case Nothing(reason=reason):
            return _drop(thread, reason, because)
        case Complaint(reason=reason):
            return _unusable(state, thread, reply, reason, because)
        case Analysis() | Summary():
            raise LookupError(f"thread {thread.thread} cannot go on from its {thread.turn.task}")


def _hand_out(
    state: State, thread: Thread, reply: RoleReplied, because: tuple[int, ...]
) -> Due | None:
    """Give a design to an implementer: the last one in the architect's own thread."""
    n_left = len(thread.designs) - len(thread.handed_out)
    if n_left > 1 and is_full(state, thread.kernel):
        return None
    choice = choose(state, thread, by_catalogue=reply.provider == "catalogue")
    if choice.design is None:
        return _unusable(state, thread, reply, "; ".join(choice.repeats), because)
    plan = choice.design.plan
    if choice.is_last:
        return _next(state, thread, "implement", because, plan=plan, why=choice.nth)
    if refusal := cannot_ask(state, "implement"):
        return _drop(thread, refusal, because)
    turn = draw_turn(state, thread.kernel, "implement", None, choice.nth)
    if turn is None:
        return None
    update = {"architect": thread.turn.turn, "plan": plan}
    return Due(turn.model_copy(update=update), because)


def _unusable(
    state: State, thread: Thread, reply: RoleReplied, complaint: str, because: tuple[int, ...]
) -> Due | None:
    if thread.turn.attempt >= state.begun.campaign.search.repairs:
        return _drop(thread, f"cannot be used after repair: {complaint}", because)
    return _repair(state, thread, reply, complaint, because)


def _drop(thread: Thread, reason: str, because: tuple[int, ...]) -> Due:
    return Due(TurnDropped(turn=thread.turn.turn, reason=reason), because)


def _next(
    state: State,
    thread: Thread,
    task: Task,
    because: tuple[int, ...],
    *,
    plan: Sha | None = None,
    draft: Sha | None = None,
    why: str = "the thread goes on",
) -> Due | None:
    if refusal := cannot_ask(state, task):
        return _drop(thread, refusal, because)
    turn = draw_turn(state, thread.kernel, task, thread.thread, why)
    if turn is None:
        return None
    parent = thread.turn.parent
    update = {"plan": plan or thread.turn.plan, "draft": draft, "parent": parent}
    return Due(turn.model_copy(update=update), because)


def _repair(
    state: State, thread: Thread, reply: RoleReplied, complaint: str, because: tuple[int, ...]
) -> Due | None:
    model = thread.turn.model
    if refusal := models.unaffordable(state, model):
        return _drop(thread, refusal, because)
    if models.is_busy(state, model):
        return None
    update = {
        "turn": state.desk.n_turns + 1,
        "nth": _nth(state, thread.kernel, thread.turn.task),
        "attempt": thread.turn.attempt + 1,
        "complaint": complaint,
        "previous": reply.reply,
        "reasons": "the same again, with the exact complaint",
    }
    return Due(thread.turn.model_copy(update=update), because)


def _propose(state: State, thread: Thread, because: tuple[int, ...]) -> Due:
    draft = thread.draft
    if draft is None or thread.draft_seq is None:
        raise LookupError(f"thread {thread.thread} was reviewed without a draft")
    proposal = CandidateProposed(
        candidate=state.tree.next_id,
        kernel=thread.kernel,
        form=thread.form,
        parent=thread.turn.parent,
        hypothesis=draft.hypothesis,
        expected_speedup=draft.expected_speedup,
        source=draft.source,
        normalized=draft.normalized,
        move=draft.move,
        cites=draft.cites,
        author=thread.author,
        models=thread.models,
        turn=thread.turn.turn,
        reply=thread.draft_reply if thread.form == "step" else None,
        repairs=thread.draft_turn.repairs if thread.draft_turn else None,
    )
    return Due(proposal, (thread.draft_seq, *because))


def repair(state: State) -> Due | None:
    """Return a source that screening refused to its author, with what is wrong with it."""
    if state.closed or remaining(state) <= 0:
        return None
    for candidate, refused in state.desk.refused.items():
        turn, node = refused.turn, state.tree.nodes[candidate]
        if turn.attempt >= state.begun.campaign.search.repairs or refused.refused is None:
            continue
        if is_full(state, node.kernel) or not models.can_ask(state, turn.model):
            continue
        again = word(state, node.kernel, "implement", turn.model, f"c{candidate} was refused")
        update = {
            "repairs": candidate,
            "plan": turn.plan,
            "draft": node.source,
            "diagnostics": refused.diagnostics,
            "attempt": turn.attempt + 1,
        }
        return Due(again.model_copy(update=update), (refused.refused,))
    return None


def assign(state: State) -> Due | None:
    """Start a thread for the kernel with the least on its way for the gain still possible."""
    if state.closed or remaining(state) <= 0:
        return None
    loads = {k: in_flight(state, k) / weight(state, k) for k in state.tree.branches}
    for kernel in sorted(loads, key=lambda k: (loads[k], k)):
        task = wanted(state, kernel)
        if task is None or cannot_ask(state, task):
            continue
        if is_full(state, kernel) or _thinking(state, kernel):
            continue
        turn = draw_turn(state, kernel, task, None, _why(state, kernel, task))
        if turn is None:
            continue
        return Due(turn, (since(state.tree.incumbent(kernel)),))
    return None


def _why(state: State, kernel: str, task: Task) -> str:
    """What the choice of a kernel and a task rests on."""
    ratio = state.ledger.of(kernel).time_over_bound
    gain = "its bound is not known" if ratio is None else f"{ratio:.2f} times its bound"
    load = f"{in_flight(state, kernel)} on their way for a weight of {weight(state, kernel):.2f}"
    left = f", {designs_left(state, kernel)} designs left" if task == "design" else ""
    return f"{load} ({gain}){left}"


def wanted(state: State, kernel: str) -> Task | None:
    """The task of the next thread: designs early, steps late.

    A new design starts untuned; compared with a version that steps have tuned, a better one loses.
    When steps end on a best version, the architect is asked again what it now knows.

    None when there is nothing to ask about: no baseline yet, nothing left to propose, or too many
    threads in a row without a candidate.
    """
    branch, desk = state.tree.branches[kernel], state.desk.of(kernel)
    if branch.incumbent is None or desk.failures >= MAX_FAILURES:
        return None
    design = designs_left(state, kernel) > 0
    step = branch.incumbent != branch.baseline and branch.incumbent not in desk.no_steps
    if design and not desk.no_designs:
        return "design"
    if step:
        return "step" if branch.incumbent in desk.analyses else "analyse"
    return "design" if design and branch.incumbent not in desk.no_designs else None


def cannot_ask(state: State, task: Task) -> str | None:
    """Why budgets forbid one more turn of ``task`` to each of its role's models, or None."""
    pool = state.begun.campaign.roles.of(TASKS[task])
    reasons = [models.unaffordable(state, name) for name in pool]
    return reasons[0] if all(reasons) else None


def draw_turn(
    state: State, kernel: str, task: Task, thread: int | None, reasons: str
) -> TurnAssigned | None:
    """Word a turn for a model that can be asked now, if there is one."""
    drawn = models.draw(state, TASKS[task], state.desk.n_turns + 1)
    if drawn is None:
        return None
    model, why = drawn
    return word(state, kernel, task, model, f"{reasons}; {why}" if why else reasons, thread)


def word(
    state: State, kernel: str, task: Task, model: str, reasons: str, thread: int | None = None
) -> TurnAssigned:
    """Word a turn; it begins a thread of its own unless it is one of another."""
    number = state.desk.n_turns + 1
    return TurnAssigned(
        turn=number,
        kernel=kernel,
        role=TASKS[task],
        task=task,
        nth=_nth(state, kernel, task),
        model=model,
        parent=state.tree.incumbent(kernel).candidate,
        thread=thread or number,
        reserved=models.reserve(state, model),
        reasons=reasons,
    )


def _nth(state: State, kernel: str, task: Task) -> int:
    return state.desk.of(kernel).asked.get(task, 0) + 1


def _thinking(state: State, kernel: str) -> bool:
    return any(t.kernel == kernel and t.turn.task in THINKING for t in state.desk.threads.values())


def since(best: Node) -> int:
    """Record since which a version is the best one."""
    return best.decided if best.decided is not None else best.proposed
