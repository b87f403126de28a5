"""The target's own moves, for searches without a model: designs, and steps on the best version."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from targets.cpu.designs import DESIGNS, Design
from targets.cpu.designs.design import KNOBS, Limit
from targets.cpu.designs.steps import Step, knobs_of, steps
from targets.protocol import REVIEW, Ask, TargetError

_TASKS: Final = "design, implement, analyse, step, review, summarize"
_BOTTLENECKS: Final[Mapping[Limit, str]] = {
    "decoding": "compute-bound: decoding the weights takes longer than loading them",
    "sums": "compute-bound: the arithmetic on decoded weights takes longer than loading them",
    "memory": "memory-bound: most of the time goes into waiting for weights",
}
_NAME: Final = re.compile(r"^/\* Design ([\w-]+)\.$", re.MULTILINE)


@dataclass(frozen=True)
class CpuCatalogue:
    """Answers as a model would, in the same format; knows nothing but what it is asked."""

    features: frozenset[str]
    """Of the processor, as /proc/cpuinfo names them."""

    def reply(self, ask: Ask) -> str:
        """Return the reply text for ``ask``; deterministic given ``ask``.

        Raises:
            TargetError: no such kernel, or no such task.
        """
        match ask.task:
            case "design":
                return self._design(ask)
            case "implement":
                return self._implement(ask)
            case "analyse":
                return self._analyse(ask)
            case "step":
                return _step(ask)
            case "summarize":
                return "<nothing>the catalogue reads nothing</nothing>"
            case "review":
                return REVIEW
            case other:
                raise TargetError(f"the catalogue has no task {other!r}; use one of {_TASKS}")

    def designs(self, kernel: str) -> tuple[Design, ...]:
        """Return the designs of a kernel that a processor with these features can run.

        Raises:
            TargetError: no such kernel.
        """
        if kernel not in DESIGNS:
            raise TargetError(f"unknown kernel {kernel!r}; use one of {', '.join(DESIGNS)}")
        return tuple(d for d in DESIGNS[kernel] if d.needs <= self.features)

    def _design(self, ask: Ask) -> str:
        for design, knobs in self._plans(ask):
            claims = _claims(design, ask.kernel, knobs)
            if _move(design, ask.kernel, knobs) not in ask.tried:
                return f"<design>{claims}<plan>{_plan(design, knobs)}</plan></design>"
        return "<nothing>every design has been tried</nothing>"

    def _plans(self, ask: Ask) -> Iterator[tuple[Design, Mapping[str, int]]]:
        """Yield the designs as they are, then again with the parameters of the best version.

        Steps tune one design; another that lost to it untuned may win with the same values.
        """
        designs = self.designs(ask.kernel)
        yield from ((design, design.start(ask.kernel)) for design in designs)
        best = knobs_of(ask.incumbent_source)
        name = _design_of(ask.incumbent_source)
        for design in designs:
            start = design.start(ask.kernel)
            tuned = {knob: best.get(knob, value) for knob, value in start.items()}
            if design.name != name and tuned != start:
                yield design, tuned

    def _implement(self, ask: Ask) -> str:
        name, knobs = _read_plan(ask.plan)
        for design in self.designs(ask.kernel):
            if design.name == name:
                source = design.source(ask.kernel, knobs)
                return f"{_claims(design, ask.kernel, knobs)}<source>\n{source}</source>"
        return "<nothing>the plan names no design of the catalogue</nothing>"

    def _analyse(self, ask: Ask) -> str:
        limit = self._limit(ask)
        advice = "; ".join(_advice(limit, knobs_of(ask.incumbent_source)))
        return f"<bottleneck>{_BOTTLENECKS[limit]}</bottleneck><advice>{advice}</advice>"

    def _limit(self, ask: Ask) -> Limit:
        """Return what the best version waits for, by the design that it says it is."""
        name = _design_of(ask.incumbent_source)
        limit: Limit = next(
            (d.limit for d in self.designs(ask.kernel) if d.name == name), "decoding"
        )
        one_row = knobs_of(ask.incumbent_source).get("ROWS") == 1
        return "sums" if limit == "memory" and one_row else limit  # x is loaded for every row


def _design_of(source: str) -> str:
    """Return the name of the design that a source says it is, or ""."""
    found = _NAME.search(source)
    return found.group(1) if found else ""


def _move(design: Design, kernel: str, knobs: Mapping[str, int]) -> str:
    """Name a design, with the parameters that differ from those that it starts from."""
    tuned = [f" {k}={knobs[k]}" for k, v in design.start(kernel).items() if knobs.get(k, v) != v]
    return f"design:{design.name}{''.join(tuned)}"


def _claims(design: Design, kernel: str, knobs: Mapping[str, int]) -> str:
    return (
        f"<hypothesis>{design.idea}</hypothesis><speedup>{design.speedup:g}</speedup>"
        f"<move>{_move(design, kernel, knobs)}</move>"
    )


def _plan(design: Design, knobs: Mapping[str, int]) -> str:
    words = "; ".join(f"{name} ({KNOBS[name]}): {v}" for name, v in knobs.items())
    return f"{design.name} {json.dumps(dict(knobs))}\n{design.idea}\nStart with {words}."


def _read_plan(plan: str) -> tuple[str, dict[str, int]]:
    """Read name and parameters from a plan's first line; what cannot be read is left out."""
    name, _, text = plan.strip().partition("\n")[0].partition(" ")
    try:
        knobs = json.loads(text or "{}")
    except ValueError:
        knobs = {}
    known = knobs.items() if isinstance(knobs, dict) else ()
    return name, {k: v for k, v in known if k in KNOBS and type(v) is int}


def _advice(limit: Limit, knobs: Mapping[str, int]) -> Iterator[str]:
    if not knobs:
        yield "decode whole vectors of weights, and keep several independent sums"
    if knobs.get("ROWS") == 1:
        yield "take more rows at a time: they share the loads of x, and their sums are independent"
    if knobs.get("PREFETCH") == 0:
        yield "prefetch: a row's end and the arithmetic leave the memory idle"
    if knobs.get("ERF_POLYNOMIAL") == 0:
        yield "replace erff, which is called for every element, by a polynomial"
    if limit != "memory" and knobs:
        yield "another way to decode may need fewer instructions a weight"
    elif knobs:
        yield "the distance to the load-only bound says what is left"


def _step(ask: Ask) -> str:
    for step in steps(ask.incumbent_source, _read_limit(ask.bottleneck), ask.seed):
        if step.move not in ask.tried:
            return _edit(step)
    return "<nothing>no parameter of this source has a value that was not tried</nothing>"


def _read_limit(bottleneck: str) -> Limit | None:
    """Read what the best version waits for from an analyst's words, whoever wrote them."""
    words: tuple[tuple[str, Limit], ...] = (
        ("memory", "memory"),
        ("bandwidth", "memory"),
        ("arithmetic", "sums"),
        ("decod", "decoding"),
        ("compute", "sums"),
    )
    text = bottleneck.lower()
    return next((limit for word, limit in words if word in text), None)


def _edit(step: Step) -> str:
    line = f"#define {step.knob} "
    return (
        f"<hypothesis>{step.knob} ({KNOBS[step.knob]}) from {step.before} to {step.after}: "
        "a few per cent, if it is what limits.</hypothesis>"
        f"<speedup>1.02</speedup><move>{step.move}</move>"
        f'<edit sites="1"><search>{line}{step.before}\n</search>'
        f"<replace>{line}{step.after}\n</replace></edit>"
    )
