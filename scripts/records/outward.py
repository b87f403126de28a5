"""``kernelwright log export``: one flat, typed Parquet table per kind of event, and all records."""

from argparse import Namespace

from events.log import read, read_start
from scripts.records.arrow import check_installed
from scripts.records.copies import copy_blobs, make_new


def main(args: Namespace) -> int:
    """Export a run; return the exit status."""
    check_installed()
    from scripts.records.tables import write_tables

    read_start(args.run)  # no folder is made for a run that is not there
    make_new(args.parquet, "the tables")
    written = write_tables(args.run, args.parquet)
    print(f"wrote {args.parquet}: {written.n_records} records in {written.n_tables} tables")
    if args.with_blobs:
        print(f"{copy_blobs(read(args.run), args.run, args.parquet)} blobs copied")
    print(f"head {written.head}")
    if written.import_head != written.head:
        why = "since another version of kernelwright wrote the run"
        print(f"head of what `log import` makes of it, {why}: {written.import_head}")
    return 0
