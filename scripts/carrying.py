"""Carries facts from one run into another campaign: as claims to be checked there."""

import json
import os
import re
import tomllib
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from events.campaign import Campaign
from events.projections.state import replay
from events.pruned import KnownBlobs
from knowledge.carried import MAX_BYTES, Carried, misfit, pack, unpack
from scripts.campaign_file import MAX_CAMPAIGN_BYTES, CampaignError, load
from scripts.files import FileError, read_file, write
from scripts.plain import one_line
from scripts.runs import UsageError, recorded

HEADER = "[knowledge]"
HEADER_LINE = re.compile(r"^([ \t]*\[[ \t]*knowledge[ \t]*\][ \t]*(?:#[^\r\n]*)?)(\r?\n|\Z)", re.M)


def export(argv: Sequence[str]) -> int:
    """Write the confirmed facts of a run to a file; return 0."""
    parser = ArgumentParser(
        prog="kernelwright knowledge export",
        description="Write the confirmed facts of a run to a file, with their probes.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write them, JSON")
    args = parser.parse_args(argv)
    _check_free(args.file)
    records, head = recorded(args.run)
    try:
        carried = pack(replay(records), head, KnownBlobs.of(args.run, records).text)
    except ValueError as e:
        raise UsageError(f"{args.run} has facts that no file can carry: {one_line(str(e))}") from e
    write(args.file, carried.model_dump_json(indent=1).encode() + b"\n")
    n_probes = sum(fact.probe is not None for fact in carried.facts)
    print(f"wrote {args.file}: {len(carried.facts)} confirmed facts, {n_probes} with a probe")
    return 0


def import_(argv: Sequence[str]) -> int:
    """Name a file of facts in a campaign file; return 0."""
    parser = ArgumentParser(
        prog="kernelwright knowledge import",
        description="Let runs of a campaign begin with the facts in a file, as claims to check.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what an export wrote")
    parser.add_argument("campaign", type=Path, metavar="CAMPAIGN.toml", help="is changed")
    args = parser.parse_args(argv)
    carried, campaign = _read(args.file), load(args.campaign)
    _check_target(args.file, carried, campaign)
    refusals = [why for fact in carried.facts if (why := misfit(fact, campaign.kernels))]
    name = os.path.relpath(args.file.resolve(), args.campaign.resolve().parent)
    if not name.isprintable():
        raise UsageError(f"{args.file} has a name that no campaign file can hold; rename it")
    _name_in(args.campaign, Path(name).as_posix())
    n_facts = len(carried.facts) - len(refusals)
    print(f"{args.campaign}: its runs begin with {n_facts} claims from {one_line(carried.run)}")
    for why in sorted(set(refusals)):
        print(f"left out, {refusals.count(why)}: {one_line(why)}")
    return 0


def read_facts(path: Path, campaign: Campaign) -> tuple[Carried, ...]:
    """Read the facts of other runs that a campaign names.

    Args:
        path: of the campaign file, from whose folder the names lead.
        campaign: what it says.

    Raises:
        CampaignError: a file cannot be read, holds no facts, or those of another target.
    """
    found = []
    for name in campaign.knowledge.facts:
        try:
            carried = _read(path.parent / name)
            _check_target(path.parent / name, carried, campaign)
        except (FileError, UsageError) as e:
            raise CampaignError(path, f"'knowledge.facts': {e}") from None
        found.append(carried)
    return tuple(found)


def _check_free(path: Path) -> None:
    """Let an export replace an earlier one, and nothing else."""
    if not path.exists():
        return
    try:
        _read(path)
    except (FileError, UsageError):
        raise UsageError(
            f"{path} is there, and no export wrote it; move it away, or name another file"
        ) from None


def _read(path: Path) -> Carried:
    """Read a file that anybody may have written.

    Raises:
        UsageError: it holds no facts.
        FileError: it cannot be read.
    """
    data = read_file(path, MAX_BYTES)
    try:
        return unpack(data)
    except ValueError as e:
        raise UsageError(f"{path} is no file of `kernelwright knowledge export`: {e}") from None


def _check_target(path: Path, carried: Carried, campaign: Campaign) -> None:
    if carried.target != campaign.target:
        theirs, ours = one_line(carried.target), campaign.target
        raise UsageError(f"{path} is about target {theirs!r}, the campaign about {ours!r}")


def _name_in(campaign: Path, name: str) -> None:
    """Add the line that names a file of facts to the table of a campaign file.

    Raises:
        UsageError: that would change anything else; nothing was changed.
    """
    text, line = _text(campaign), f"facts = [{json.dumps(name, ensure_ascii=False)}]"
    before = tomllib.loads(text)
    wanted = before | {"knowledge": before.get("knowledge", {}) | {"facts": [name]}}
    if "facts" in before.get("knowledge", {}):
        raise UsageError(f"{campaign} names facts already; write in its {HEADER}: {line}")
    changed = _with_line(text, line, has_table="knowledge" in before)
    try:
        is_right = tomllib.loads(changed) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise UsageError(f"{campaign} cannot be changed safely; write in its {HEADER}: {line}")
    write(campaign.resolve(), changed.encode())


def _text(campaign: Path) -> str:
    """A campaign file as it is, ends of lines included."""
    return read_file(campaign, MAX_CAMPAIGN_BYTES).decode()


def _with_line(text: str, line: str, *, has_table: bool) -> str:
    """Put a line first in the table, which comes last if there is none."""
    end = "\r\n" if "\r\n" in text else "\n"
    if not has_table:
        return f"{text}{'' if text.endswith(end) else end}{end}{HEADER}{end}{line}{end}"
    return HEADER_LINE.sub(lambda found: f"{found[1]}{end}{line}{found[2] or end}", text, count=1)
