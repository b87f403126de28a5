"""Every prompt reads as it was last approved."""

from tests.support.golden_prompts import GOLDEN, golden


def test_every_prompt_reads_as_recorded() -> None:
    """A change of a template shows in review as what a role will read.

    `python -m tests.support.golden_prompts` writes the prompts anew.
    """
    recorded = {path.name: path.read_text("utf-8") for path in GOLDEN.iterdir()}

    assert golden() == recorded
