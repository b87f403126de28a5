"""`kernelwright prompts` shows what a role reads."""

from pathlib import Path

import pytest

from events.campaign import ROLES
from prompts.render import TEMPLATES
from scripts.main import main
from tests.support.runs import begin, campaign


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the fake target."""
    folder = tmp_path_factory.mktemp("prompts") / "fake-1"
    begin(folder, campaign(max_candidates=12))
    return folder


def test_the_list_says_of_every_template_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs and output too: what a reader has to know to change one."""
    assert main(["prompts", "list"]) == 0
    said = capsys.readouterr().out

    for name in TEMPLATES:
        role, _, task = name.partition("_")
        assert f"prompts/{name}.md\nRole: {role}. Task: {task}.\nInputs: " in said
    assert said.count("\nOutput: ") == len(TEMPLATES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_shown_what_it_would_read(
    run: Path, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the best version of now."""
    assert main(["prompts", "show", role, "--run", str(run), "--kernel", "beta"]) == 0
    said = capsys.readouterr().out

    assert said.startswith(f"You are the {role}.")
    assert "# Kernel `beta`" in said
    assert "- compiler: fake 1.0\n" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["analyst"], "name a kernel of the run with --kernel: alpha, beta"),
        (["analyst", "--kernel", "gamma"], "name a kernel of the run with --kernel: alpha, beta"),
        (["analyst", "--kernel", "beta", "--task", "step"], "the analyst has no task 'step'"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_line(
    run: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, no traceback."""
    assert main(["prompts", "show", *words, "--run", str(run)]) == 2
    assert capsys.readouterr().err.startswith(f"kernelwright: {told}")
