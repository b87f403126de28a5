"""Verify the blobs of a run: those that records name, and what else is in the packs."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from events.blobs import Blobs
from events.errors import BlobCorruptError, BlobMissingError
from events.vocabulary import Sha


class BadPlace(NamedTuple):
    """A place of a pack that is not what was written, or a blob that is in none."""

    file: Path
    offset: int
    """Byte of the pack; 0 if the blob is in none."""
    seq: int
    """The record that first names the blob, or the first blob that is missing; 0 if none is."""
    reason: str


@dataclass
class BlobSurvey:
    """What there is of the blobs of a run and what is wrong with them."""

    n_intact: int = 0
    """Of those that records name, equal ones counted once."""
    unpruned: list[Sha] = field(default_factory=list)
    """Those of them that were to be pruned."""
    orphans: list[Sha] = field(default_factory=list)
    """Blobs that no record names; harmless."""
    bad: list[BadPlace] = field(default_factory=list)
    """Blobs in the order of the log, then parts of packs."""


def survey_blobs(blobs: Blobs, named: Mapping[Sha, int], pruned: Container[Sha]) -> BlobSurvey:
    """Read every blob that records name, and look for damage between the blobs.

    A part of a pack that is no blob may be the rest of a write that a crash tore; it counts only
    if a blob is missing. The header of a pack is never torn.

    Args:
        blobs: those of the run.
        named: the blobs that records name, with the first record that does.
        pruned: those that were given up on purpose.
    """
    found, missing = BlobSurvey(), list[int]()
    for sha, seq in named.items():
        try:
            blobs.get(sha)
        except BlobMissingError:
            if sha not in pruned:
                missing.append(seq)
                reason = f"the blob {sha} that it names is missing"
                found.bad.append(BadPlace(blobs.root, 0, seq, reason))
        except BlobCorruptError as e:
            found.bad.append(BadPlace(*blobs.place(sha), seq, f"{e.reason} (blob {sha})"))
        else:
            found.n_intact += 1
            if sha in pruned:
                found.unpruned.append(sha)
    for place, reason in blobs.flaws():
        if missing or place.offset == 0:
            found.bad.append(BadPlace(*place, min(missing, default=0), reason))
    found.orphans = sorted(set(blobs.names()).difference(named))
    return found
