"""``kernelwright log import``: a run folder made of an export, its log the same to the byte."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from events.disk import DISK
from events.segments import FOLDER, segment_name
from scripts.records.arrow import check_installed
from scripts.records.copies import copy_blobs, make_new


def main(args: Namespace) -> int:
    """Import an export; return the exit status."""
    check_installed()
    from scripts.records.untables import rebuild

    rebuilt = rebuild(args.folder)
    make_new(args.out, "the run")
    n_blobs = copy_blobs(rebuilt.records, args.folder, args.out)
    _put_log(rebuilt.segments, args.out)
    print(f"wrote {args.out}: {len(rebuilt.records)} records, {n_blobs} blobs")
    print(f"head {rebuilt.head}")
    return 0


def _put_log(parts: Mapping[int, bytes], run: Path) -> None:
    """Give a run its log, whole and durable: without the last segments it would pass for another.

    Raises:
        OSError: the disk is full or failing; the folder then holds no run.
    """
    staged = run / f"{FOLDER}.tmp"
    staged.mkdir()
    for first, data in parts.items():
        DISK.create(staged / segment_name(first), data)
    DISK.sync_folder(staged)
    staged.rename(run / FOLDER)
    DISK.sync_folder(run)
