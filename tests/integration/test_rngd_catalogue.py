"""The catalogue with the real toolchain: how near its moves come to an expert's kernels."""

from pathlib import Path
from typing import Final

import pytest

from decisions.replies import SourceText, parse
from targets.protocol import Ask, Built, Documented
from targets.rngd.artifact import Artifact, unpack
from targets.rngd.build import build
from targets.rngd.catalogue import RngdCatalogue
from targets.rngd.check import check
from targets.rngd.environment import runtime
from targets.rngd.kernels import TASKS
from targets.rngd.target import rngd_target
from tests.support.rngd import NEWER, toolchain

EXPERTS: Final = Path(__file__).parent.parent / "support" / "rngd_experts"
"""The best kernels that were found by hand, for tests alone."""
ENOUGH: Final = 1.02
"""Times an expert's cycles that the catalogue may need."""
STEPS: Final = {
    "decoder_feedforward": ("last=8", "loads=explicit", "scales=norm"),
    "sliding_project_qkv": ("scales=after",),
    "sliding_attention_output": ("last=8",),
    "sliding_project_qkv_mxfp4": (),
    "sliding_attention_output_mxfp4": (),
}
"""Choices that a search ends with when it starts from the design "one-pass"."""

pytestmark = pytest.mark.timeout(600)


def _made(kernel: str) -> str:
    """Ask the catalogue for a design, and then for the steps on it, each by its name."""
    catalogue = RngdCatalogue()
    reply = catalogue.reply(Ask(kernel, "implement", "", "one-pass", frozenset(), "", 1))
    made = parse("implement", reply, "")
    assert isinstance(made, SourceText), made
    text = made.source
    for step in STEPS[kernel]:
        text = _step(catalogue, kernel, text, f"step:{step}")
    return text


def _step(catalogue: RngdCatalogue, kernel: str, text: str, move: str) -> str:
    tried: frozenset[str] = frozenset()
    while True:
        reply = catalogue.reply(Ask(kernel, "step", text, "", tried, "", 1))
        step = parse("step", reply, text)
        assert isinstance(step, SourceText), f"{move} is never proposed: {step}"
        if step.move == move:
            return step.source
        tried |= {step.move}


def _built(kernel: str, text: str) -> Artifact:
    built = build(toolchain(NEWER), TASKS[kernel], text)
    assert isinstance(built, Built), built
    return unpack(kernel, built.artifact)


@pytest.mark.rngd
@pytest.mark.parametrize("kernel", TASKS)
def test_the_catalogue_comes_within_two_per_cent_of_an_expert(kernel: str) -> None:
    """Cycles of the vendor's cost model; both kernels pass every rule."""
    expert = _built(kernel, (EXPERTS / f"{kernel}.py").read_text(encoding="utf-8"))
    found = _built(kernel, _made(kernel))

    assert expert.cycles is not None
    assert found.cycles is not None
    assert found.cycles <= ENOUGH * expert.cycles


@pytest.mark.rngd_check
@pytest.mark.parametrize("kernel", ["sliding_attention_output", "sliding_attention_output_mxfp4"])
def test_what_the_catalogue_ends_with_is_right(kernel: str) -> None:
    """A fast kernel that computes something else would win every search."""
    toolchain(NEWER)
    if (run := runtime()) is None:
        pytest.skip("no environment has furiosa-torch")
    results = check(run, TASKS[kernel], _built(kernel, _made(kernel)).text, (1,))

    assert [result.passed for result in results] == [True], results


@pytest.mark.rngd
def test_the_language_documents_what_the_kernels_use() -> None:
    """Agents learn the language from what the installed package says of itself."""
    target = rngd_target(toolchain(NEWER).version)
    assert isinstance(target, Documented)
    titles = {document.title for document in target.documents()}

    assert {"operation.contract", "fetch.table_lookup", "commit.typecast", "range"} <= titles
    assert len([title for title in titles if title.startswith("example ")]) >= 8
