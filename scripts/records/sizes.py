"""``kernelwright log stat``: where the bytes of a run are."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from events.blob_names import named_by
from events.blobs import Blobs
from events.codec import encode
from events.errors import BlobCorruptError, BlobMissingError
from events.index import SUFFIX
from events.log import read
from events.segments import FOLDER
from events.vocabulary import BlobKind, Record, Sha


@dataclass
class Amount:
    """Blobs of one kind, equal ones counted once."""

    n: int = 0
    stored: int = 0
    """Bytes in the packs, compressed, with the header of each."""
    raw: int = 0
    """Bytes before compression."""
    absent: int = 0
    """Pruned, missing or damaged."""


@dataclass
class Census:
    """What the records of a run take."""

    records: Counter[str] = field(default_factory=Counter)
    """By kind of event."""
    bytes: Counter[str] = field(default_factory=Counter)
    """Encoded, by kind of event; headers of batches not counted."""
    blobs: dict[Sha, BlobKind] = field(default_factory=dict)
    """As what each blob was named first."""


def main(args: Namespace) -> int:
    """Print the sizes; nothing is judged: that is `log verify`."""
    census = count(read(args.run))
    amounts = weigh(census, Blobs(args.run))
    for line in (*_records(census), "", *_blobs(amounts), "", *_folder(args.run)):
        print(line)
    return 0


def count(records: Iterable[Record]) -> Census:
    """Count records, their bytes, and the blobs that they name."""
    census = Census()
    for record in records:
        kind = record.event.kind
        census.records[kind] += 1
        census.bytes[kind] += len(encode((record,))) - 1
        for named in named_by(record.event):
            census.blobs.setdefault(named.sha, named.kind)
    return census


def weigh(census: Census, blobs: Blobs) -> dict[BlobKind, Amount]:
    """Measure the blobs, by kind."""
    amounts: dict[BlobKind, Amount] = {}
    for sha, kind in census.blobs.items():
        amount = amounts.setdefault(kind, Amount())
        try:
            raw = len(blobs.get(sha))
        except (BlobMissingError, BlobCorruptError):
            amount.absent += 1
        else:
            amount.n += 1
            amount.raw += raw
            amount.stored += blobs.stored_bytes(sha)
    return amounts


def _records(census: Census) -> Iterator[str]:
    total = census.bytes.total()
    yield f"{'records':<24}{'count':>9}{'bytes':>14}{'share':>8}"
    for kind, size in census.bytes.most_common():
        yield f"{kind:<24}{census.records[kind]:>9}{size:>14,}{size / total:>8.1%}"
    yield f"{'all':<24}{census.records.total():>9}{total:>14,}"


def _blobs(amounts: dict[BlobKind, Amount]) -> Iterator[str]:
    yield f"{'blobs':<24}{'count':>9}{'stored bytes':>14}{'raw bytes':>14}{'absent':>8}"
    for kind, a in sorted(amounts.items(), key=lambda item: -item[1].stored):
        yield f"{kind:<24}{a.n:>9}{a.stored:>14,}{a.raw:>14,}{a.absent:>8}"
    every = list(amounts.values())
    n, stored, raw = (sum(getattr(a, f) for a in every) for f in ("n", "stored", "raw"))
    yield f"{'all':<24}{n:>9}{stored:>14,}{raw:>14,}{sum(a.absent for a in every):>8}"


def _folder(run: Path) -> Iterator[str]:
    indexes = _size(run / FOLDER, f"*{SUFFIX}")
    log, blobs = _size(run / FOLDER) - indexes, _size(run / "blobs")
    yield f"{'log/':<33}{log:>14,}"
    yield f"{'log/*' + SUFFIX:<33}{indexes:>14,}"
    yield f"{'blobs/':<33}{blobs:>14,}"
    yield f"{'other files':<33}{_size(run) - log - indexes - blobs:>14,}"


def _size(folder: Path, names: str = "*") -> int:
    return sum(path.stat().st_size for path in folder.rglob(names) if path.is_file())
