"""Verdicts on what artifacts compute: each question is answered once in a process.

Candidates that differ in cost alone mean the same, so they share their verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sim.npu.interpret import Hang, Meaning, run
from sim.npu.memo import Memo
from targets.protocol import FixtureResult
from targets.sim.artifact import load
from targets.sim.fixtures import Fixture, fixture

MAX_FIXTURES: Final = 15
"""Kept in memory, at up to 0.1 GB each: five for each of three kernels."""
_VALUES: Final = Memo()


@dataclass(frozen=True)
class _Question:
    """Whether a program is right on a fixture; what computes the same is the same question."""

    kernel: str
    key: str
    seed: int
    index: int
    meaning: Meaning = field(compare=False)


def check(kernel: str, artifact: bytes, seeds: Sequence[int]) -> tuple[FixtureResult, ...]:
    """Run an artifact on one fixture per seed and stop at the first that fails.

    Args:
        kernel: its name.
        artifact: of it.
        seeds: one per fixture; its position picks the distribution.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    meaning = load(kernel, artifact).meaning
    results: list[FixtureResult] = []
    for index, seed in enumerate(seeds):
        results.append(_verdict(_Question(kernel, meaning.key, seed, index, meaning)))
        if not results[-1].passed:
            break
    return tuple(results)


@lru_cache(maxsize=4096)
def _verdict(question: _Question) -> FixtureResult:
    on = _fixture(question.kernel, question.seed, question.index)
    margins: list[float] = []
    for number, inputs in enumerate(on.launches):
        which = " (second launch, on changed inputs)" if number else ""
        outputs = run(question.meaning, inputs.launch, _VALUES)
        if isinstance(outputs, Hang):
            at = outputs.position
            return FixtureResult(on.label, None, f"hangs at {at.line}:{at.column}{which}")
        margin, detail = inputs.judge(outputs)
        if margin is None or detail:
            return FixtureResult(on.label, margin, f"{detail or 'nothing to compare'}{which}")
        margins.append(margin)
    return FixtureResult(on.label, max(margins), "")


@lru_cache(maxsize=MAX_FIXTURES)
def _fixture(kernel: str, seed: int, index: int) -> Fixture:
    return fixture(kernel, seed, index)
