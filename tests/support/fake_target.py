"""A target without a device: a source says how fast it is, so that the truth is known.

A source is lines of ``key value``: ``time`` (seconds per launch), ``wrong``, ``broken`` (does not
build), ``crash`` (on the device). ``knob`` lines are what steps change.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence

from targets.protocol import (
    Ask,
    BuildFailed,
    Built,
    Card,
    Catalogue,
    Cost,
    FixtureResult,
    Measured,
    MeasureFailed,
    Run,
    Sources,
)
from tests.support.schedules import dump, instruction, tensor

BASE = "# first version\ntime 1.0\nknob 0\n"
DESIGNS: Mapping[str, str] = {
    "wrong": "time 0.2\nwrong\nknob 0\n",
    "half": "time 0.5\nknob 0\n",
    "broken": "time 0.1\nbroken\nknob 0\n",
    "crash": "time 0.1\ncrash\nknob 0\n",
    "slower": "time 1.4\nknob 0\n",
    "twin": "time   0.5\nknob 0   # the same as half\n",
    "quarter": "time 0.25\nknob 0\n",
}
KNOB_GAINS = (1.0, 0.9, 1.1, 0.8, 0.95)
"""Factor on the time per value of the knob."""
NOISE = 0.01


def facts_of(source: str) -> dict[str, str]:
    """Read a source."""
    lines = (line.split("#")[0].split() for line in source.splitlines())
    return {words[0]: " ".join(words[1:]) for words in lines if words}


class FakeCatalogue:
    """Designs in a fixed order, then every value of the knob."""

    names: tuple[str, ...] = tuple(DESIGNS)

    def reply(self, ask: Ask) -> str:
        """Answer like a model would."""
        match ask.task:
            case "design":
                return self._design(ask)
            case "implement":
                name = ask.plan.strip()
                return self._proposal(f"design:{name}", f"<source>\n{DESIGNS[name]}</source>")
            case "analyse":
                return "<bottleneck>the knob</bottleneck><advice>turn it</advice>"
            case "step":
                return self._step(ask)
            case _:
                return "<review>go</review><reason>nothing is filtered</reason>"

    def _design(self, ask: Ask) -> str:
        left = [name for name in self.names if f"design:{name}" not in ask.tried]
        if not left:
            return "<nothing>every design was tried</nothing>"
        return f"<design>{self._proposal(f'design:{left[0]}', f'<plan>{left[0]}</plan>')}</design>"

    def _step(self, ask: Ask) -> str:
        now = facts_of(ask.incumbent_source).get("knob", "0")
        values = [str(v) for v in range(len(KNOB_GAINS)) if str(v) != now]
        left = [v for v in values if f"step:{v}" not in ask.tried]
        if not left:
            return "<nothing>every knob was turned</nothing>"
        edit = f"<search>knob {now}\n</search><replace>knob {left[0]}\n</replace>"
        return self._proposal(f"step:{left[0]}", f'<edit sites="1">{edit}</edit>')

    def _proposal(self, move: str, body: str) -> str:
        return f"<hypothesis>{move} is faster</hypothesis><move>{move}</move>{body}"


class FakeTarget:
    """Obeys the `Target` protocol; deterministic in everything, noise included."""

    name = "fake"

    def __init__(
        self, noise: float = NOISE, *, shares_host: bool = False, version: str = "1.0"
    ) -> None:
        self.shares_host = shares_host
        self.catalogue: Catalogue = FakeCatalogue()
        self._noise, self.version = noise, version

    def kernels(self) -> tuple[str, ...]:
        """Two kernels that differ in nothing but their names."""
        return ("alpha", "beta")

    def presets(self) -> tuple[str, ...]:
        """One size."""
        return ("full",)

    def fingerprint(self) -> dict[str, str]:
        """A toolchain."""
        return {"compiler": f"fake {self.version}"}

    def card(self, kernel: str) -> Card:
        """Describe a kernel."""
        return Card(task=f"make {kernel} fast", weight_bytes=1000)

    def sources(self, kernel: str) -> Sources:
        """Baseline, canaries and bounds."""
        return Sources(
            baseline=BASE,
            canary_wrong=BASE + "wrong\n",
            canary_slow="time 3.0\n",
            bounds={"one": "time 0.2\n", "two": "time 0.19\n"},
        )

    def normalize(self, source: str) -> str:
        """Comments and spacing do not matter."""
        return "\n".join(f"{k} {v}".strip() for k, v in facts_of(source).items())

    def build(self, kernel: str, source: str) -> Built | BuildFailed:
        """The artifact is the source."""
        if "broken" in facts_of(source):
            return BuildFailed("line 2: broken", "broken statement", "broken", certain=True)
        return Built(source.encode(), "")

    def check(
        self, kernel: str, artifact: bytes, seeds: Sequence[int]
    ) -> tuple[FixtureResult, ...]:
        """Right or wrong as the source says."""
        margin = 7.0 if "wrong" in facts_of(artifact.decode()) else 0.25
        n = 1 if margin > 1 else len(seeds)
        return tuple(FixtureResult(f"fixture {i}", margin, "") for i in range(n))

    def measure(
        self,
        kernel: str,
        arms: Sequence[bytes],
        schedule: Sequence[int],
        *,
        group: int,
        launches: int,
        checked: Sequence[bool],
        seed: int,
        limit_s: float,
    ) -> Measured | MeasureFailed:
        """Times as the sources say, with a noise that depends on the job's arguments alone."""
        for arm, artifact in enumerate(arms):
            if "crash" in facts_of(artifact.decode()):
                return MeasureFailed(arm, "segmentation fault")
        key = hashlib.sha256(repr((kernel, arms, tuple(schedule), seed)).encode()).digest()
        runs = [
            Run(arm, (self._time(arms[arm], key, i),) * launches, 1e-4)
            for i, arm in enumerate(schedule)
        ]
        return Measured(tuple(runs), tuple(0.25 if c else None for c in checked))

    def truth(self, kernel: str, artifact: bytes) -> float:
        """As the source says; a crash counts as a hang."""
        facts = facts_of(artifact.decode())
        if "crash" in facts:
            return math.inf
        return float(facts["time"]) * KNOB_GAINS[int(facts.get("knob", "0"))]

    def true_bound(self, kernel: str) -> float:
        """Of the faster of the two."""
        return 0.19

    def _time(self, artifact: bytes, key: bytes, index: int) -> float:
        byte = hashlib.sha256(key + bytes([index])).digest()[0]
        wobble = 1 + self._noise * (byte - 127.5) / 127.5
        return self.truth("", artifact) * wobble


class CostedTarget(FakeTarget):
    """One with a cost model, which knows the time of a design and nothing of its knob."""

    def cost(self, kernel: str, artifact: bytes) -> Cost:
        """A load of two thirds of the time, and a pass that needs it."""
        cycles = round(3e4 * float(facts_of(artifact.decode())["time"]))
        load = instruction(0, 2 * cycles // 3, "DmaEngine", makes=[1], bytes=1000)
        work = instruction(2 * cycles // 3, cycles, reads=[1], makes=[2])
        tensors = [tensor(1, "w", size=1000), tensor(2, "y", size=10)]
        return Cost(cycles, dump([load, work], tensors).encode())
