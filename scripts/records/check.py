"""``kernelwright log verify``: everything of a run is read, and what is wrong is named."""

import json
import re
from argparse import Namespace
from dataclasses import asdict
from typing import Any

from events.damage import Survey, survey
from events.segments import SUFFIX, segment_name
from scripts.plain import one_line
from scripts.runs import FAILED, UsageError

N_SHOWN = 20


def main(args: Namespace) -> int:
    """Verify; return 0 if the record is whole and, if a head was given, is the one meant."""
    noted = None if args.head is None else args.head.strip().lower()
    if noted is not None and not re.fullmatch(r"[0-9a-f]{64}", noted):
        raise UsageError("--head takes the 64 hex digits that `log head` or the run's end printed")
    found = survey(args.run, noted)
    difference = None if noted is None else _difference(found, noted)
    if args.as_json:
        print(json.dumps(_as_json(found, difference)))
    else:
        for line in (*_text(found), *([difference] if difference else [])):
            print(one_line(line))
    return FAILED if found.damage or difference else 0


def _difference(found: Survey, noted: str) -> str | None:
    """What it means that the head is not the noted one; None if it is."""
    if found.head == noted:
        return None
    if found.noted is not None:
        return (
            f"the log is longer than when the head {noted} was noted: its first {found.noted} "
            f"records are those of then, {found.end.seq - found.noted} have been added since"
        )
    if found.damage and found.damage[-1].file.suffix == SUFFIX:
        return f"the head {noted} was not found before the damage"
    return (
        f"no place of this log has the head {noted}: either the log is shorter than when that was "
        "noted, or somebody has rebuilt the chain with other contents, or it is of another run; "
        f"whoever noted that head has not seen these {found.end.seq} records"
    )


def _text(found: Survey) -> list[str]:
    bad = [str(damage) for damage in found.damage[:N_SHOWN]]
    if len(found.damage) > N_SHOWN:
        bad.append(f"and {len(found.damage) - N_SHOWN} places more")
    lines = [f"DAMAGED {line}" if n == 0 else f"        {line}" for n, line in enumerate(bad)]
    whole = "before the damage" if found.damage else "all of them whole"
    lines.append(f"{found.end.seq} records, {found.n_blobs} blobs, {whole}")
    if found.pruned:
        by = ", ".join(map(str, sorted(set(found.pruned.values()))))
        lines.append(f"{len(found.pruned)} blobs were pruned on purpose (records {by})")
    if found.unpruned:
        lines.append(f"{len(found.unpruned)} of them are still there: `log prune` again")
    if found.orphans:
        lines.append(f"{len(found.orphans)} blobs that no record names (harmless)")
    lines += [f"{path} is not that of its segment; delete it" for path in found.odd_indexes]
    if found.torn_bytes:
        lines.append(
            f"{found.torn_bytes} bytes after the last whole record: a crash cut them off, or the "
            "run is being written; nothing in them was acknowledged"
        )
    lines.append(f"head {found.head}")
    return lines


def _as_json(found: Survey, difference: str | None) -> dict[str, Any]:
    return {
        "whole": not found.damage,
        "records": found.end.seq,
        "segment": segment_name(found.end.segment),
        "offset": found.end.offset,
        "head": found.head,
        "head_difference": difference,
        "records_under_noted_head": found.noted,
        "blobs": found.n_blobs,
        "pruned": len(found.pruned),
        "still_to_prune": found.unpruned,
        "orphans": found.orphans,
        "odd_indexes": [str(path) for path in found.odd_indexes],
        "torn_bytes": found.torn_bytes,
        "damage": [{**asdict(d), "file": str(d.file)} for d in found.damage],
    }
