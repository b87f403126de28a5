"""Whatever is changed in one field of one record of an honest run, audit notices."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from decisions import plan
from decisions.audit import Course, Finding
from decisions.policy import FORMER
from events.errors import FoldError, LogError
from events.log import read
from events.pruned import KnownBlobs
from events.vocabulary import Decision, Mark, Order, Record, Reply, Request, RoleReplied
from tests.support.eventful import eventful

KINDS = [
    event.model_fields["kind"].default
    for sort in (Mark, Order, Request, Reply, Decision)
    for event in get_args(sort)
]
UNTOUCHED = (
    "acceptance.max_pairs", "acceptance.min_run_s", "acceptance.noise_pairs",
    "budget.cost_usd", "budget.wall_s", "kernels", "knowledge.probe_share",
    "models.{}.api_key_env", "models.{}.at_once", "models.{}.base_url",
    "models.{}.command", "models.{}.folder", "models.{}.max_tokens", "models.{}.model",
    "models.{}.run", "models.{}.timeout_s",
    "name", "preset", "search.repairs", "target",
)  # fmt: skip
READ = "what an instrument read, once; `audit --rebuild` reads it again of what was accepted"
SETTING = "what the operator asked for; no decision of this run came near it"
WORDS = "said of an event that cannot happen again"
IDLE = "versions of rules that decided nothing in this stretch of the log"
COUNTED = "calls that were repeated, as their provider has counted them; nobody else did"
UNBUILT = "what programs count that this toolchain does not build, so that nothing is fitted to it"
JUSTIFIED: Mapping[str, Mapping[str, str]] = {
    "run_started": {
        **dict.fromkeys((f"campaign.{setting}" for setting in UNTOUCHED), SETTING),
        "cards.{}.task": "words for agents, repeated in every prompt",
        "prices.{}.source": WORDS,
        "microbenchmarks.{}.points.{}.counts": UNBUILT,
        "microbenchmarks.{}.points.{}.counts.{}": UNBUILT,
        "versions": WORDS,
        "versions.{}": WORDS,
        "rules.{}": IDLE,
    },
    "run_resumed": {"versions": WORDS, "versions.{}": WORDS, "rules.{}": IDLE},
    "run_interrupted": {"reason": WORDS},
    "operator_hinted": {"text": "words for agents, repeated in prompts"},
    "budget_changed": dict.fromkeys(
        ("changes", "changes[].amount", "changes[].is_relative"), SETTING
    ),
    "log_repaired": {"offset": "a place in a file that has been written over"},
    "blobs_pruned": {"n_bytes": "the size of files that are gone"},
    "role_replied": {"wall_s": READ, "spent.model_calls": COUNTED},
    "candidate_examined": {
        "fixtures[].fixture": READ,
        "fixtures[].margin": READ,
        "stages[].wall_s": READ,
    },
    "pairs_measured": {
        "candidate_margin": READ,
        "incumbent_margin": READ,
        "device_s": READ,
        "token": "of the last job; campaigns that share the device leave gaps",
    },
    "job_failed": {"device_s": READ, "reason": READ},
    "fact_checked": {"wall_s": READ},
    "fact_learned": {"n_builds": READ},
    "request_lost": {"reason": WORDS},
}
"""Fields of a record of which audit may not notice a change, and why. The time of a record is not
tried: only a limit on wall time looks at it."""
OTHER_SHA = "0123456789abcdef" * 4


class Run(NamedTuple):
    """A run with the course of its audit before some of its records."""

    records: list[Record]
    courses: dict[int, Course]
    known: frozenset[Finding]
    """What audit says of the honest run: that evidence was pruned."""


def _chosen(records: list[Record]) -> set[int]:
    """The first, the middle and the last record of each kind, and a reply that was paid for."""
    chosen: set[int] = set()
    for kind in KINDS:
        seqs = [r.seq for r in records if r.event.kind == kind]
        assert seqs, f"the run has no {kind}"
        chosen |= {seqs[0], seqs[len(seqs) // 2], seqs[-1]}
    paid = (r.seq for r in records if isinstance(r.event, RoleReplied) and r.event.spent.tokens)
    return chosen | {next(paid)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("runs") / "eventful"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "DIGEST_EVERY", 100)
        eventful(folder)
        records = list(read(folder))
        blobs = KnownBlobs.of(folder, records)
        contents = {}

        def blob(sha: str) -> bytes:
            if sha not in contents:
                contents[sha] = blobs.get(sha)
            return contents[sha]

        course, courses, known = Course(blob, LogError, FORMER), {}, set()
        chosen = _chosen(records)
        for record in records:
            if record.seq in chosen:
                courses[record.seq] = copy.deepcopy(course)
            known |= set(course.findings(record))
            course.apply(record)
        assert {finding.sort for finding in known} == {"pruned"}
        yield Run(records, courses, frozenset(known))


def is_noticed(run: Run, changed: Record) -> bool:
    """Whether audit of the run with this record in it finds anything new."""
    course = copy.deepcopy(run.courses[changed.seq])
    for record in (changed, *run.records[changed.seq + 1 :]):
        found = set(course.findings(record)) - run.known
        if record is changed and found:
            return True
        if any(f.kind != "state_digested" or f.sort == "not_derivable" for f in found):
            return True
        try:
            course.apply(record)
        except FoldError:
            return True
    return False


def others(value: Any) -> list[Any]:
    """Other values of the same type, and of others where there is none."""
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1]
        case float():
            return [value * 1.001 + 1e-9, value * 0.999 - 1e-9]
        case str() if re.fullmatch("[0-9a-f]{64}", value):
            return [OTHER_SHA]
        case str():
            return [f"{value}x"]
        case None:
            return [1, 1.5, "x", OTHER_SHA, {"reason": "x", "type": "nothing"}]
        case _:
            return []


def changes(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value that differs in one leaf or one entry, with the path of what differs."""
    match value:
        case dict():
            for key, inner in value.items():
                name = "{}" if path.rpartition(".")[2] in TABLES else key
                for where, other in changes(inner, f"{path}.{name}"):
                    yield where, {**value, key: other}
            if path.rpartition(".")[2] in TABLES:
                yield path, dict(list(value.items())[:-1])
        case tuple() | list():
            for i, inner in enumerate(value):
                for where, other in changes(inner, f"{path}[]"):
                    yield where, (*value[:i], other, *value[i + 1 :])
            if value:
                yield path, value[:-1]
                yield path, (*value, value[0])
        case _:
            yield from ((path, other) for other in others(value))


RECORD = TypeAdapter(Record)
TABLES = {"versions", "rules", "toolchain", "sources", "cards", "bounds", "figures", "value",
          "programs", "times_s", "microbenchmarks", "points", "counts",
          "models", "prices"}  # fmt: skip
"""Fields whose keys are data."""


def changed_records(record: Record, run: Run) -> Iterator[tuple[str, Record]]:
    """Every valid record that differs from ``record`` in one field, other than its time."""
    plain = {**record._asdict(), "event": record.event.model_dump()}
    kind = plain["event"].pop("kind")
    place = {name: plain.pop(name) for name in ("seq", "time_ns")}
    for path, other in changes(plain, ""):
        fields = {**other, **place, "event": {**other["event"], "kind": kind}}
        try:
            changed = RECORD.validate_python(fields)
        except ValidationError:
            continue
        if changed != record:
            yield path.removeprefix(".event").removeprefix("."), changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_any_field_is_noticed(run: Run, kind: str) -> None:
    """What nobody could derive is listed, with the reason; everything else is derived."""
    unnoticed: set[str] = set()
    for seq in run.courses:
        if run.records[seq].event.kind == kind:
            for path, changed in changed_records(run.records[seq], run):
                if path not in unnoticed and not is_noticed(run, changed):
                    unnoticed.add(path)

    assert unnoticed == JUSTIFIED.get(kind, {}).keys()
