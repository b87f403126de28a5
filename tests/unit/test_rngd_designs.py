"""The designs of RNGD's catalogue can be read as a model's can, and become sources."""

import pytest

from decisions.replies import PlanTexts, SourceText, parse
from events.vocabulary import Nothing
from targets.protocol import Ask
from targets.rngd.catalogue import RngdCatalogue
from targets.rngd.kernels import TASKS


@pytest.mark.parametrize("kernel", TASKS)
def test_every_design_is_proposed_once_and_written(kernel: str) -> None:
    """A reply that cannot be read would cost a turn for each of them."""
    catalogue, tried = RngdCatalogue(), set[str]()

    def reply(task: str, plan: str = "") -> str:
        return catalogue.reply(Ask(kernel, task, "", plan, frozenset(tried), "", 1))

    while not isinstance(designs := parse("design", reply("design"), ""), Nothing):
        assert isinstance(designs, PlanTexts), designs
        (plan,) = designs.plans
        source = parse("implement", reply("implement", plan.plan), "")
        assert isinstance(source, SourceText), source
        assert source.move == plan.move
        assert plan.move not in tried
        tried.add(plan.move)

    assert tried
