"""A campaign file is right, or one line says what is wrong with it and what would be right."""

import pickle
from pathlib import Path

import pytest

from events.campaign import (
    Acceptance,
    Budget,
    Campaign,
    KnowledgeSettings,
    Model,
    Screening,
    Search,
)
from scripts.campaign_file import CampaignError, load

GOOD = """
name = "x"
target = "cpu"
preset = "small"
kernels = ["sliding_project_qkv", "decoder_feedforward"]
"""
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.toml"))


def complaint(folder: Path, text: str) -> str:
    """What is said about a campaign file, its path left out."""
    path = folder / "x.toml"
    path.write_text(text)
    with pytest.raises(CampaignError) as caught:
        load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


def test_a_file_with_the_needed_keys_has_the_defaults_for_the_rest(tmp_path: Path) -> None:
    """A newcomer names a target and kernels, and no more."""
    path = tmp_path / "x.toml"
    path.write_text(GOOD + "[budget]\nwall_s = 60\n[search]\nin_flight = 2\n")

    campaign = load(path)

    assert campaign.kernels == ("sliding_project_qkv", "decoder_feedforward")
    assert campaign.budget.wall_s == 60.0
    assert campaign.acceptance.alpha == 0.002


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_loads(path: Path) -> None:
    """An example with a mistake would be a newcomer's first impression."""
    assert load(path).kernels


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[acceptance]\nalhpa = 1", "unknown key 'acceptance.alhpa'; did you mean 'alpha'?"),
        ("alpha = 0.1", "unknown key 'alpha'; did you mean 'acceptance.alpha'?"),
        ("[serch]", "unknown key 'serch'; did you mean 'search'?"),
        (
            "[models.architect]\nmodle = 'm'",
            "unknown key 'models.architect.modle'; did you mean 'model'?",
        ),
        ("[screening]\nzzz = 1", "unknown key 'screening.zzz'; there are: workers, fixtures"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_right_one(
    tmp_path: Path, more: str, said: str
) -> None:
    """A misspelt key that did nothing would run the wrong campaign for days."""
    assert complaint(tmp_path, GOOD + more) == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("seed = '1'", "'seed' is \"1\"; it should be a valid integer"),
        ("seed = true", "'seed' is true; it should be a valid integer"),
        (f"seed = {2**63}", f"'seed' is {2**63}; it should be less than {2**63}"),
        (f"x = {'[' * 5000}", "not valid TOML: nested too deeply"),
        (
            "[search]\nmax_candidates = 0",
            "'search.max_candidates' is 0; it should be greater than or equal to 1",
        ),
        ("[budget]\nwall_s = inf", "'budget.wall_s' is Infinity; it should be a finite number"),
        ("search = 3", "'search' is 3; it should be a table"),
        (
            "[models.default]\nprovider = 'litelm'",
            "'models.default.provider' is \"litelm\"; "
            "it should be 'catalogue', 'litellm', 'command', 'manual' or 'recorded'",
        ),
        (
            "[models.reviewer]\nprovider = 'litellm'",
            "'models.reviewer': provider 'litellm' needs 'model'",
        ),
        (
            "[models.default]\nprovider = 'manual'",
            "'models.default': provider 'manual' needs 'folder'",
        ),
        (
            "[models.big]\nusd_per_million_in = 1.0",
            "'models.big': give 'usd_per_million_in' and 'usd_per_million_out' both, or neither",
        ),
        ("[models.big]", "'models.big' answers for no role; name it under [roles]"),
        ("[roles]\nanalyst = []", "'roles.analyst' needs names of models, each once"),
        (
            "[roles]\nanalyst = ['default', 'default']",
            "'roles.analyst' needs names of models, each once",
        ),
        (
            "[roles]\nanalyst = ['big']",
            "'roles.analyst' names no model: 'big'; there are: default",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wanted(tmp_path: Path, more: str, said: str) -> None:
    """The reader should not have to look up the type of a key."""
    assert complaint(tmp_path, GOOD + more) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"cpu"', '"cpuu"', "'target': no target 'cpuu'; did you mean 'cpu'?"),
        (
            '"small"',
            '"smal"',
            "'preset': unknown preset 'smal'; use one of full, small; did you mean 'small'?",
        ),
        (
            "project_qkv",
            "project_qk",
            "'kernels': target 'cpu' has no kernel 'sliding_project_qk'; "
            "did you mean 'sliding_project_qkv'?",
        ),
        ("sliding_project_qkv", "decoder_feedforward", "'kernels' names a kernel twice"),
        ('name = "x"', "", "missing key 'name'"),
        ('name = "x"', 'name = = "x"', "not valid TOML: Invalid value (at line 2, column 8)"),
    ],
)
def test_names_and_syntax_are_checked_before_anything_starts(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """A wrong kernel found after the first start would leave a run folder behind."""
    assert complaint(tmp_path, GOOD.replace(old, new)) == said


def test_a_missing_file_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    """Most missing files are misspelt ones."""
    (tmp_path / "cpu-small.toml").write_text(GOOD)

    with pytest.raises(CampaignError, match=r"no such file; did you mean 'cpu-small.toml'\?"):
        load(tmp_path / "cpu_small.toml")


def test_a_campaign_error_survives_pickling() -> None:
    """Exceptions cross processes."""
    error = CampaignError(Path("a.toml"), "broken")

    assert str(pickle.loads(pickle.dumps(error))) == "a.toml: broken"


def test_the_page_on_campaign_files_names_every_key() -> None:
    """A key that no page explains might as well not be there."""
    page = (Path(__file__).parents[2] / "docs" / "campaign-file.md").read_text()
    tables = (Search, Screening, Acceptance, KnowledgeSettings, Budget, Model, Campaign)
    scalars = {name for table in tables for name in table.model_fields}

    assert {n for n in scalars if f"`{n}`" not in page and f"`[{n}" not in page} == set()


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ('[knowledge]\nfacts = ["a\\u0000b"]\n', "knowledge.facts.0"),
        ('[knowledge]\ndocuments = ["a\\u0000b"]\n', "knowledge.documents.0"),
        ('[models.default]\nprovider = "manual"\nfolder = "\\u0000"\n', "models.default.folder"),
        ('[models.default]\nprovider = "recorded"\nrun = "\\u0000"\n', "models.default.run"),
        (
            '[models.default]\nprovider = "command"\ncommand = ["a", "\\u0000"]\n',
            "models.default.command.1",
        ),
    ],
)
def test_a_nul_names_no_file_and_no_argument(tmp_path: Path, more: str, key: str) -> None:
    """The system would refuse it hours later, each time in another way."""
    assert complaint(tmp_path, GOOD + more) == f"'{key}': a NUL character names no file"


def test_a_value_that_is_wrong_is_shown_in_short(tmp_path: Path) -> None:
    """However long it is; and so is a key."""
    assert len(complaint(tmp_path, GOOD + f"seed = {[1] * 9999}\n")) < 200
    assert len(complaint(tmp_path, GOOD + f"{'x' * 9999} = 1\n")) < 400
    assert len(complaint(tmp_path, GOOD + f"[budget]\nwall_s = '{'x' * 9999}'\n")) < 200


def test_a_number_of_too_many_digits_is_no_toml(tmp_path: Path) -> None:
    """Python reads no integer of so many."""
    assert complaint(tmp_path, GOOD + f"seed = {'9' * 5000}\n").startswith("not valid TOML: ")
