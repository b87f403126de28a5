"""Reads the documents that a campaign file names."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.campaign_file import CampaignError
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
    documents = []
    for name in names:
        path = campaign.parent / name
        found = list(_files(path))
        if not found:
            kinds = ", ".join(KINDS)
            raise CampaignError(campaign, f"'knowledge.documents': no {kinds} below {path}")
        documents += [_document(campaign, file, path.parent) for file in found]
    n_bytes = sum(len(document.text.encode()) for document in documents)
    if n_bytes > MAX_BYTES:
        said = f"{n_bytes >> 20} MB of documents; name {MAX_BYTES >> 20} MB at most"
        raise CampaignError(campaign, f"'knowledge.documents': {said}")
    return tuple(documents)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(p for p in path.rglob("*") if p.suffix in KINDS and p.is_file())


def _document(campaign: Path, file: Path, above: Path) -> Document:
    try:
        return Document(file.relative_to(above).as_posix(), file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as e:
        reason = f"{file} is not UTF-8 text (byte {e.start})"
    except OSError as e:
        reason = f"{file} cannot be read ({e.strerror})"
    raise CampaignError(campaign, f"'knowledge.documents': {reason}") from None
