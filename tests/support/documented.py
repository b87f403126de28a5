"""The fake target with documents and microbenchmarks, and a model that reads."""

from dataclasses import replace

from actors.providers.port import Completion, Question
from events.vocabulary import Usage
from targets.protocol import Document, Microbenchmark, Point
from tests.support.fake_target import CostedTarget, FakeCatalogue

PASSAGE = "A source that says broken does not build. A knob above 9 is broken. Time is money.\n"
CLAIMS = (
    "<claim><says>broken does not build.</says><quote>says broken does not build</quote>"
    '<probe predicts="refused"><source>time 1.0\nbroken\n</source></probe></claim>'
    "<claim><says>A knob above 9 does not build.</says><quote>A knob above 9 is broken</quote>"
    '<probe predicts="refused"><edit><search>knob 0</search><replace>knob 10</replace></edit>'
    "</probe></claim>"
    "<claim><says>Time is money.</says><quote>Time is money.</quote></claim>"
    "<claim><says>Money is time.</says><quote>Money is time.</quote></claim>"
)


class GradualCatalogue(FakeCatalogue):
    """Its best design comes late, so that it replaces the parent of steps."""

    names = ("twin", "half", "slower", "quarter", "broken", "wrong", "crash")


class DocumentedTarget(CostedTarget):
    """The fake target, which says more of itself."""

    def __init__(self, *, version: str = "1.0") -> None:
        super().__init__(version=version)
        self.catalogue = GradualCatalogue()

    def documents(self) -> tuple[Document, ...]:
        """Two short ones."""
        return (Document("manual", PASSAGE), Document("notes", "Nothing of use.\n"))

    def microbenchmarks(self, kernel: str) -> tuple[Microbenchmark, ...]:
        """Times that are a launch and a thing, and a family that does not build."""
        points = {
            f"n{n}": Point(f"time {0.1 + 0.05 * n}\n", {"launch": 1.0, "thing": float(n)})
            for n in range(3)
        }
        broken = {"n1": replace(points["n1"], source="broken\n")}
        return (Microbenchmark("things", points), Microbenchmark("broken", broken))


class Reader:
    """Reads the notes at the second attempt; but for documents it answers as the catalogue does."""

    name = "command:author"

    def complete(self, question: Question) -> Completion:
        """Answer for a price."""
        prompt, ask = question.prompt, question.ask
        text = FakeCatalogue().reply(ask)
        if ask.task == "summarize":
            again = "# Your last reply" in prompt
            other = "<nothing>it says nothing</nothing>" if again else "It says nothing."
            text = CLAIMS if PASSAGE in prompt else other
        return Completion(text, Usage(tokens_in=100, tokens_out=10), n_calls=1)
