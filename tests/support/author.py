"""A model that never was: answers as the fake target's catalogue does, and repairs."""

from pathlib import Path

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.messages import Actor
from actors.opening import first_event
from actors.providers.port import Completion, Provider, Question
from actors.providers.prices import prices
from actors.roles import RoleActor
from events.blobs import Blobs
from events.campaign import Campaign, Model, RoleName, Roles
from events.log import EventLog
from events.projections.state import State
from events.vocabulary import Price, Usage
from targets.protocol import Ask
from tests.support.fake_target import DESIGNS, FakeTarget
from tests.support.runs import SECRET, campaign, ticking

MODEL = Model(provider="command", command=("author",))
FAULTS = ("broken", "wrong", "crash")
N_DESIGNS = 3


class Author:
    """Draws several designs at once; a refused source comes back without its fault."""

    name = "command:author"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def complete(self, question: Question) -> Completion:
        """Answer a prompt."""
        prompt, ask = question.prompt, question.ask
        self.prompts.append(prompt)
        match ask.task:
            case "design":
                text = self.design(ask)
            case "implement":
                text = self.implement(prompt, ask)
            case _:
                text = FakeTarget().catalogue.reply(ask)
        return Completion(text, Usage(tokens_in=100, tokens_out=10), 1)

    def design(self, ask: Ask) -> str:
        """Several designs that were not proposed before, each by its name."""
        left = [name for name in DESIGNS if f"design:{name}" not in ask.tried]
        if not left:
            return "<nothing>every design was tried</nothing>"
        return "".join(map(drawn, left[:N_DESIGNS]))

    def implement(self, prompt: str, ask: Ask) -> str:
        """The source of a plan; without what was wrong, if it was refused."""
        source = DESIGNS[ask.plan.strip()]
        if "# Your source was refused" in prompt:
            source = "".join(f"{line}\n" for line in source.splitlines() if line not in FAULTS)
        return f"<hypothesis>{ask.plan} as planned</hypothesis><source>\n{source}</source>"


def drawn(name: str) -> str:
    """A design in the form of a reply."""
    return (
        f"<design><hypothesis>{name} is faster</hypothesis><move>design:{name}</move>"
        f"<bottleneck>the time of {name}</bottleneck><bytes>1000</bytes>"
        f"<plan>{name}</plan></design>"
    )


def authored(*roles: RoleName, **search: int) -> Campaign:
    """A short campaign in which a model answers for ``roles``."""
    named = Roles.model_validate(dict.fromkeys(roles, ("author",)))
    models = {"default": Model(), "author": MODEL}
    return campaign(**search).model_copy(update={"models": models, "roles": named})


def authors(
    run: Path, target: FakeTarget, *roles: RoleName, author: Provider | None = None
) -> dict[str, Actor]:
    """The actors of a run, with ``author`` for ``roles``."""
    whole = author or Author()
    actors = crew(target, run / "lease", {}, lambda: 0.0)
    for role in roles:
        actors[role] = RoleActor(role, target, lambda _: whole, lambda: 0.0)
    return actors


def known(settings: Campaign) -> dict[str, Price]:
    """The prices of a campaign of which no table says any."""
    return prices(settings, lambda model: None)


def written(run: Path, settings: Campaign, author: Provider, *roles: RoleName) -> State:
    """Run a campaign in which ``author`` answers for ``roles``, to its end."""
    target = FakeTarget()
    with EventLog.open(run, ticking()) as log:
        mailbox = LocalMailbox(authors(run, target, *roles, author=author))
        boss = Director(log, Blobs(run), mailbox)
        first = first_event(
            settings, target, Blobs(run), secret_seed=SECRET, versions={}, prices=known(settings)
        )
        boss.start(first)
        return boss.run()
