"""Facts are worded from figures."""

from typing import cast

import pytest

from actors.keeper import KeeperActor
from actors.messages import Command
from decisions.claims import bound_claim, bound_figures, noise_claim
from events.vocabulary import FactLearned, LearningRequested, RunInterrupted
from targets.protocol import Target

SHA = {name: f"{number:064x}" for number, name in enumerate(("diagnostics", "source", "good"))}


class OneLineTarget:
    """A target that can only be named."""

    def fingerprint(self) -> dict[str, str]:
        """Name the toolchain."""
        return {"cc": "13"}


def keeper() -> KeeperActor:
    return KeeperActor(cast("Target", OneLineTarget()), lambda: 0.0)


def test_figures_are_worded_with_units() -> None:
    """The sentences stand in prompts as they are."""
    measured = bound_figures({"plain_s": 0.002, "wide_s": 0.00125, "weight_bytes": 62.5e6})

    assert bound_claim(measured) == (
        "Moving the 62.5 MB of weights alone takes 1.25 ms on this device (50 GB/s, load-only "
        "variant wide): no version can be faster."
    )
    assert noise_claim({"pair_sd_pct": 0.314, "slot_pct": 0.02, "n_pairs": 48}) == (
        "Two runs of one version differ by 0.314 log-percent within a pair (robust scale over 48 "
        "pairs); running first changes a time by +0.02: a smaller effect needs many pairs to be "
        "seen."
    )


@pytest.mark.parametrize("figures", [{}, {"plain_s": 1.0}, {"weight_bytes": 1.0}])
def test_a_bound_without_its_figures_is_refused(figures: dict[str, float]) -> None:
    """A bound of nothing would be believed by every role."""
    with pytest.raises(ValueError, match="a bound needs"):
        bound_figures(figures)


@pytest.mark.parametrize(
    ("topic", "figures", "added"),
    [
        ("bound", {"a_s": 0.001, "weight_bytes": 1e6}, {"bound_s": 0.001, "rate_gb_s": 1.0}),
        ("noise", {"pair_sd_pct": 0.3, "slot_pct": 0.0, "n_pairs": 12.0}, {}),
    ],
)
def test_the_keeper_keeps_the_figures_with_the_claim(
    topic: str, figures: dict[str, float], added: dict[str, float]
) -> None:
    """Later decisions read the numbers, prompts the sentence."""
    request = LearningRequested.model_validate(
        {"kernel": "qkv", "topic": topic, "figures": figures}
    )
    event = keeper().handle(Command(1, 1, request, {})).event

    assert isinstance(event, FactLearned)
    assert event.value == {**figures, **added}
    assert event.claim


def test_the_keeper_refuses_other_work() -> None:
    """A command in the wrong mailbox is a defect of the director."""
    with pytest.raises(ValueError, match="does not take run_interrupted"):
        keeper().handle(Command(1, 1, cast("LearningRequested", RunInterrupted(reason="x")), {}))
