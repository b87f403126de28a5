"""What the static schedule of a kernel says that limits it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sim.npu.expand import ENGINES, Engine
from sim.npu.program import Load, Pass, Store
from sim.npu.schedule import Schedule

Limit = Literal["memory", "passes", "waiting"]
WORDS: Final[Mapping[Limit, str]] = {
    "memory": "memory-bound: the DMA engine is the busiest",
    "passes": "compute-bound: the tensor unit is the busiest",
    "waiting": "bound by waiting: no engine is busy for most of the time",
}
_BUSY: Final = 0.7
"""Share of the makespan from which an engine is the limit."""
_SHOWN: Final = 3


@dataclass(frozen=True)
class Profile:
    """Where the static time of a kernel goes."""

    makespan: float
    busy: Mapping[Engine, float]
    """Share of the makespan, by engine."""
    waits: tuple[tuple[str, float], ...]
    """The longest times in which an engine waits, in static cycles, and for whom it then works."""

    @property
    def limit(self) -> Limit:
        """What to attack first."""
        engine = max(ENGINES, key=lambda e: self.busy[e])
        if self.busy[engine] < _BUSY:
            return "waiting"
        return "memory" if engine == "dma" else "passes"


def profile(plan: Schedule) -> Profile:
    """Read a static schedule."""
    busy: dict[Engine, float] = dict.fromkeys(ENGINES, 0.0)
    free: dict[Engine, float] = dict.fromkeys(ENGINES, 0.0)
    waits: dict[str, float] = {}
    for i in plan.order:
        engine, cycles = plan.commands[i].site.engine, plan.costs[i].cycles
        who = f"{engine} before {_name(plan, i)}"
        waits[who] = max(waits.get(who, 0.0), plan.begins[i] - free[engine])
        free[engine] = plan.begins[i] + cycles
        busy[engine] += cycles / plan.makespan
    longest = sorted(waits.items(), key=lambda pair: -pair[1])[:_SHOWN]
    return Profile(plan.makespan, busy, tuple(longest))


def _name(plan: Schedule, i: int) -> str:
    match plan.commands[i].site.statement:
        case Load(outputs=outputs):
            return f"load {outputs[0].name}"
        case Store(target=target):
            return f"store to {target.tensor.name}"
        case Pass(output=output):
            return output.name


def limit_in(words: str) -> Limit | None:
    """Read a limit from an analyst's words, whoever wrote them."""
    found: tuple[tuple[str, Limit], ...] = (
        ("memory", "memory"),
        ("bandwidth", "memory"),
        ("dma", "memory"),
        ("wait", "waiting"),
        ("compute", "passes"),
        ("tensor unit", "passes"),
    )
    text = words.lower()
    places = [(text.find(word), limit) for word, limit in found if word in text]
    return min(places)[1] if places else None
