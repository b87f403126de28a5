"""``kernelwright log import``: a run folder made of an export, its log the same to the byte."""

from argparse import Namespace

from events.disk import DISK
from events.segments import segment_path
from scripts.records.arrow import check_installed
from scripts.records.copies import copy_blobs, make_new


def main(args: Namespace) -> int:
    """Import an export; return the exit status."""
    check_installed()
    from scripts.records.untables import rebuild

    rebuilt = rebuild(args.folder)
    make_new(args.out, "the run")
    n_blobs = copy_blobs(rebuilt.records, args.folder, args.out)
    folder = segment_path(args.out, 0).parent
    folder.mkdir()
    for first, data in rebuilt.segments.items():
        DISK.create(segment_path(args.out, first), data)
    DISK.sync_folder(folder)
    DISK.sync_folder(args.out)
    print(f"wrote {args.out}: {len(rebuilt.records)} records, {n_blobs} blobs")
    print(f"head {rebuilt.head}")
    return 0
