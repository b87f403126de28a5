"""Documents of a campaign file: files and folders of texts, read when a run starts."""

import os
from pathlib import Path

import pytest

from scripts.campaign_file import CampaignError
from scripts.documents import MAX_BYTES, read_documents


def test_files_and_the_texts_of_folders_are_read_in_order(tmp_path: Path) -> None:
    """Names lead from the folder of the campaign file; what is no text by its name is left out."""
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    for name in ("docs/b.md", "docs/a.txt", "docs/deep/c.rst", "docs/image.png", "notes"):
        (tmp_path / name).write_text(name)

    found = read_documents(tmp_path / "campaign.toml", ("notes", "docs"))

    assert [document.title for document in found] == [
        "notes", "docs/a.txt", "docs/b.md", "docs/deep/c.rst",
    ]  # fmt: skip
    assert all(document.text == document.title for document in found)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone.md", "gone.md cannot be read (No such file or directory)"),
        ("empty", "no .md, .rst, .txt below"),
        ("pipe", "pipe is no file"),
        ("many", "more than 4 MB of documents; name fewer"),
        ("binary.md", "binary.md is not UTF-8 text (byte 1)"),
        ("long.md", "long.md is larger than 4 MB"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(tmp_path: Path, name: str, why: str) -> None:
    """It is found before the run has a folder."""
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "many").mkdir()
    for n in range(2):
        (tmp_path / "many" / f"{n}.md").write_bytes(b"a" * (MAX_BYTES - 1))
    (tmp_path / "binary.md").write_bytes(b"a\xff")
    (tmp_path / "long.md").write_bytes(b"a" * (MAX_BYTES + 1))

    with pytest.raises(CampaignError) as caught:
        read_documents(tmp_path / "campaign.toml", (name,))

    assert str(caught.value).startswith(f"{tmp_path}/campaign.toml: 'knowledge.documents': ")
    assert why in str(caught.value)
