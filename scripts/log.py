"""Read, verify, shrink and convert the record of a run.

Exit status 0 if all is well, 1 if the record is damaged or another one, 2 if it cannot be done as
asked.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from scripts.records.kinds import PRUNABLE
from scripts.runs import without_traceback


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the subcommands; return its exit status."""
    args = _parser().parse_args(argv)
    status: int = import_module(f"scripts.records.{args.module}").main(args)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright log", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, module: str, what: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=what, description=f"{what.capitalize()}.")
        command.set_defaults(module=module)
        return command

    _run(_verify(add("verify", "check", "read everything and name what is not as written")))
    _run(add("head", "head", "print the hash over the whole log"))
    _run(_cat(add("cat", "show", "print records, one a line")))
    _run(_tail(add("tail", "follow", "print the last records, and those to come")))
    _run(add("stat", "sizes", "say where the bytes are"))
    _run(_prune(add("prune", "prune", "remove the blobs of some kinds; the log says which")))
    _run(_export(add("export", "outward", "write the log as Parquet tables")))
    _import(add("import", "inward", "make a run folder of an export again"))
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")


def _as_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help=what)


def _verify(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--head", metavar="HASH", help="compare with this hash, noted earlier")
    _as_json(parser, "the outcome as one JSON object")
    return parser


def _cat(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--kind", action="append", metavar="K", help="these kinds only; may be repeated"
    )
    parser.add_argument(
        "--candidate", metavar="C", help="what there is about this candidate (c17) only"
    )
    parser.add_argument("--since", type=int, default=0, metavar="S", help="from this record on")
    parser.add_argument("--until", type=int, metavar="S", help="up to this record")
    _as_json(parser, "whole records as JSON lines")
    return parser


def _tail(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("-n", type=int, default=10, metavar="N", help="so many (default: 10)")
    parser.add_argument("-f", action="store_true", dest="follow", help="go on until Ctrl-C")
    return parser


def _prune(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--blobs", nargs="+", required=True, choices=PRUNABLE, metavar="KIND",
        help=f"of {', '.join(PRUNABLE)}",
    )  # fmt: skip
    return parser


def _export(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--parquet", type=Path, required=True, metavar="DIR", help="new folder for the tables"
    )
    parser.add_argument("--with-blobs", action="store_true", help="copy the blobs as well")
    return parser


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `log export` wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="new run folder")
