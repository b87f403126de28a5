"""Reads the documents that a campaign file names."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.campaign_file import CampaignError
from scripts.files import FileError, read_file
from targets.protocol import Document

KINDS = (".md", ".rst", ".txt")
"""Of files that are read of a folder."""
MAX_BYTES = 4 << 20
"""Of all documents together: a thousand prompts are enough."""


def read_documents(campaign: Path, names: Sequence[str]) -> tuple[Document, ...]:
    """Read files, and what texts there are in folders, in the order of their names.

    Args:
        campaign: the campaign file, from whose folder the names lead.
        names: files and folders.

    Raises:
        CampaignError: one cannot be read, or they are too long.
    """
    documents: list[Document] = []
    n_bytes = 0
    for name in names:
        path = campaign.parent / name
        found = list(_files(path))
        if not found:
            kinds = ", ".join(KINDS)
            raise CampaignError(campaign, f"'knowledge.documents': no {kinds} below {path}")
        for file in found:
            documents.append(_document(campaign, file, path.parent))
            n_bytes += len(documents[-1].text.encode())
            if n_bytes > MAX_BYTES:
                said = f"more than {MAX_BYTES >> 20} MB of documents; name fewer"
                raise CampaignError(campaign, f"'knowledge.documents': {said}")
    return tuple(documents)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(p for p in path.rglob("*") if p.suffix in KINDS and p.is_file())


def _document(campaign: Path, file: Path, above: Path) -> Document:
    try:
        return Document(file.relative_to(above).as_posix(), read_file(file, MAX_BYTES).decode())
    except UnicodeDecodeError as e:
        reason = f"{file} is not UTF-8 text (byte {e.start})"
    except FileError as e:
        reason = str(e)
    raise CampaignError(campaign, f"'knowledge.documents': {reason}") from None
