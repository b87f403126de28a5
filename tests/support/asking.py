"""Questions to providers, for tests."""

from actors.providers.port import Question
from events.vocabulary import Spend, Task, TurnAssigned
from targets.protocol import Ask


def question(
    prompt: str, *, turn: int = 1, task: Task = "design", nth: int = 1, kernel: str = "qkv"
) -> Question:
    """What a role asks, with nothing in it but its prompt and its place."""
    assigned = TurnAssigned(
        turn=turn,
        kernel=kernel,
        role="architect",
        task=task,
        nth=nth,
        model="default",
        parent=1,
        thread=turn,
        reserved=Spend(),
        reasons="",
    )
    return Question(prompt, Ask(kernel, task, "", "", frozenset(), "", 1), assigned)
