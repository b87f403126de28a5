"""The target's own moves, for searches without a model: designs, and steps on the best version."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sim.npu.diagnostics import Diagnostic
from sim.npu.kernels import SIGNATURES
from sim.npu.parse import parse
from sim.npu.printing import normalize, print_kernel
from sim.npu.toolchain import Toolchain
from targets.edits import edits
from targets.protocol import REVIEW, Ask, TargetError
from targets.sim.moves.bottleneck import WORDS, Limit, limit_in, profile
from targets.sim.moves.designs import Design, built, designs
from targets.sim.moves.registry import weights
from targets.sim.moves.search import Search

_TASKS: Final = "design, implement, analyse, step, review, summarize"
_UNREADABLE: Final = "<nothing>the best version does not parse</nothing>"
_NO_STEP: Final = "<nothing>no change of this source compiles that was not tried</nothing>"
_MAX_SEARCHES: Final = 8
"""Kernels whose searches are kept."""


@dataclass(frozen=True)
class SimCatalogue:
    """Answers as a model would, in the same format; knows nothing but what it is asked."""

    toolchain: Toolchain
    """Whose compiler it tries its changes with."""

    def reply(self, ask: Ask) -> str:
        """Return the reply text for ``ask``; deterministic given ``ask``.

        Raises:
            TargetError: no such kernel, or no such task.
        """
        if ask.kernel not in SIGNATURES:
            known = ", ".join(SIGNATURES)
            raise TargetError(f"unknown kernel {ask.kernel!r}; use one of {known}")
        match ask.task:
            case "design":
                return self._design(ask)
            case "implement":
                return self._implement(ask)
            case "analyse":
                return self._analyse(ask)
            case "step":
                return self._step(ask)
            case "summarize":
                return "<nothing>the catalogue reads nothing</nothing>"
            case "review":
                return REVIEW
            case other:
                raise TargetError(f"the catalogue has no task {other!r}; use one of {_TASKS}")

    def _step(self, ask: Ask) -> str:
        search = self._search(ask)
        if search is None:
            return _UNREADABLE
        step = search.first(ask.tried)
        if step is None:
            return _NO_STEP
        claims = _claims(step.why, step.ratio, step.name)
        return claims + "".join(_edits(ask.incumbent_source, step.source))

    def _search(self, ask: Ask) -> Search | None:
        limit = limit_in(ask.bottleneck)
        return _searches(ask.kernel, ask.incumbent_source, self.toolchain, limit, ask.seed)

    def _analyse(self, ask: Ask) -> str:
        search = self._search(ask)
        if search is None or search.schedule is None:
            return _UNREADABLE
        seen = profile(search.schedule)
        busy = ", ".join(f"{engine} {share:.0%}" for engine, share in seen.busy.items())
        waits = ", ".join(f"{who} {cycles:.0f}" for who, cycles in seen.waits)
        return (
            f"<bottleneck>{WORDS[seen.limit]} (of {seen.makespan:.0f} static cycles: {busy})"
            f"</bottleneck><advice>the longest waits in static cycles: {waits}; the static model "
            "does not see runs, the queues, and what a sync takes</advice>"
        )

    def _design(self, ask: Ask) -> str:
        for design in designs(ask.seed):
            if _design_move(design) not in ask.tried:
                plan = f"{design.name}\n{design.idea}"
                claims = _claims(design.idea, None, _design_move(design))
                return f"<design>{claims}<plan>{plan}</plan></design>"
        return "<nothing>every design has been tried</nothing>"

    def _implement(self, ask: Ask) -> str:
        name = ask.plan.strip().partition("\n")[0]
        design = next((d for d in designs(ask.seed) if d.name == name), None)
        if design is None:
            return "<nothing>the plan names no design of the catalogue</nothing>"
        kernel = parse(ask.kernel, ask.incumbent_source)
        if isinstance(kernel, Diagnostic):
            return _UNREADABLE
        source = print_kernel(built(design, kernel, self.toolchain))
        claims = _claims(design.idea, None, _design_move(design))
        return f"{claims}<source>\n{source}</source>"


@lru_cache(maxsize=_MAX_SEARCHES)
def _searches(
    kernel: str, source: str, toolchain: Toolchain, limit: Limit | None, seed: int
) -> Search | None:
    tree = parse(kernel, source)
    if isinstance(tree, Diagnostic):
        return None
    return Search(tree, toolchain, weights(limit), seed)


def _design_move(design: Design) -> str:
    return f"design:{design.name}"


def _claims(why: str, ratio: float | None, move: str) -> str:
    speedup = f"<speedup>{1 / ratio:.4g}</speedup>" if ratio else ""
    hint = f" The static model says {1 / ratio:.3f}x." if ratio else ""
    return f"<hypothesis>{why}.{hint}</hypothesis>{speedup}<move>{move}</move>"


def _edits(before: str, after: str) -> Iterator[str]:
    for edit in edits(before, after, normalize):
        yield (
            f'<edit sites="1"><search>\n{edit.search}\n</search>'
            f"<replace>\n{edit.replace}\n</replace></edit>"
        )
