"""What an audit found, in words and as values for JSON."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from decisions.audit import Finding, Sort
from decisions.policy import policy
from events.vocabulary import Record, RunResumed, RunStarted
from scripts.plain import one_line

N_NAMED = 10
"""Records that a line about a gap names."""


def told(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for each contradiction, and one for all records with the same gap."""
    gaps: defaultdict[str, list[int]] = defaultdict(list)
    for finding in findings:
        if finding.sort == "unsupported":
            yield one_line(str(finding))
        else:
            gaps[finding.problem].append(finding.seq)
    for problem, seqs in gaps.items():
        some = ", ".join(map(str, seqs[:N_NAMED])) + (", ..." if len(seqs) > N_NAMED else "")
        yield f"{len(seqs)} records, {problem}: {some}"


def verdict(findings: Sequence[Finding]) -> str:
    """The audit in one phrase."""
    n_problems = sum(finding.sort == "unsupported" for finding in findings)
    said = f"{n_problems} PROBLEMS" if n_problems else "every record is supported"
    gaps = {
        "pruned": "whose evidence was pruned and is not re-derivable",
        "not_derivable": "which nobody can derive with what is at hand",
    }
    for sort, why in gaps.items():
        if n := len({finding.seq for finding in findings if finding.sort == sort}):
            said += f" but for {n}, {why}"
    return said


def as_values(records: Sequence[Record], findings: Sequence[Finding]) -> dict[str, Any]:
    """Everything that a machine may want to know of an audit, besides which run it was."""
    sorts = Counter(finding.sort for finding in findings)
    return {
        "records": len(records),
        "supported": not findings,
        "sorts": {sort: sorts[sort] for sort in get_args(Sort)},
        "kinds": _kinds(records, findings),
        "rules": list(_stretches(records)),
        "findings": findings,
    }


def _kinds(records: Sequence[Record], findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Per kind of event: its records, those that were derived, and those with a finding."""
    flawed: defaultdict[str, set[int]] = defaultdict(set)
    for finding in findings:
        flawed[finding.kind].add(finding.seq)
    counts = Counter(record.event.kind for record in records)
    return {
        kind: {"records": n, "derived": n - len(flawed[kind])} for kind, n in sorted(counts.items())
    }


def _stretches(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The rules in force from a record on, and which of them are not at hand."""
    for record in records:
        if isinstance(record.event, RunStarted | RunResumed):
            rules = record.event.rules
            missing = sorted(set(policy(rules).missing.values()))
            yield {"since": record.seq, "rules": rules, "missing": missing}
