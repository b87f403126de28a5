"""A log is audited by the rules that were in force when it was written."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from decisions import screening
from decisions.audit import Finding, audit
from decisions.due import Due
from decisions.evidence import Reading
from decisions.plan import Rule
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.errors import LogError
from events.log import read
from events.projections.state import State
from events.vocabulary import CandidateAccepted, Record, RunResumed, RunStarted
from scripts.replay import fold
from tests.support.runs import begin, campaign

GATE = "screening.verdict"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the fake target that came to its end."""
    folder = tmp_path_factory.mktemp("runs") / "fake-1"
    begin(folder, campaign(max_candidates=12))
    return folder


def under(run: Path, rules: Mapping[str, int]) -> list[Record]:
    """The records of a run that says that it was decided by these rules."""
    first, *others = read(run)
    assert isinstance(first.event, RunStarted)
    event = first.event.model_copy(update={"rules": dict(rules)})
    return [first._replace(event=event), *others]


def found(run: Path, records: list[Record], *former: Rule | Reading) -> list[Finding]:
    return list(audit(records, Blobs(run).get, LogError, former))


def of_kinds(records: list[Record], *kinds: str) -> list[int]:
    return [record.seq for record in records if record.event.kind in kinds]


def hesitant(state: State) -> Due | None:
    """A gate that never has an answer."""
    return None


def test_a_version_that_is_kept_is_the_one_that_is_asked(run: Path) -> None:
    """A run of an older version is held against the rules of then, not those of today."""
    records = under(run, {**IN_FORCE, GATE: 0})
    same = Rule(GATE, 0, ("candidate_screened",), screening.verdict)
    other = same._replace(answer=hesitant)

    assert found(run, records, same) == []
    problems = {f.seq: f.problem for f in found(run, records, other) if f.sort == "unsupported"}
    for seq in of_kinds(records, "candidate_screened"):
        assert seq in problems


def test_what_a_missing_version_decided_is_not_fine_and_not_wrong(run: Path) -> None:
    """Nobody can tell; what the other rules decided is derived as ever."""
    records = under(run, {**IN_FORCE, GATE: 0})
    findings = found(run, records)

    assert [f.seq for f in findings] == of_kinds(records, "candidate_screened")
    assert {f.sort for f in findings} == {"not_derivable"}
    reason = "not re-derivable by this version: rule screening.verdict version 0"
    assert {f.problem for f in findings} == {reason}


def test_what_the_rules_at_hand_decided_is_still_checked(run: Path) -> None:
    """A missing rule is no excuse for the others."""
    records = under(run, {**IN_FORCE, GATE: 0})
    at = next(r.seq for r in records if isinstance(r.event, CandidateAccepted))
    accept = records[at].event.model_copy(update={"reason": "it looked faster"})
    records[at] = records[at]._replace(event=accept)

    assert [f.seq for f in found(run, records) if f.sort == "unsupported"] == [at]


def test_a_record_that_a_rule_at_hand_says_is_derived(run: Path) -> None:
    """Baselines are proposed by one rule, candidates by another that is missing."""
    records = under(run, {**IN_FORCE, "turns.proceed": 7})
    seqs = {f.seq for f in found(run, records)}

    assert {f.sort for f in found(run, records)} == {"not_derivable"}
    for seq in of_kinds(records, "candidate_proposed"):
        assert (seq in seqs) == (records[seq].event.author != "target")  # type: ignore[union-attr]


def test_replies_of_another_reading_are_not_derivable(run: Path) -> None:
    """What nobody here can read again is not fine, and neither is what nobody says how to read."""
    kinds = ("role_replied", "turn_failed", "edits_reapplied")
    for rules in (
        {**IN_FORCE, "replies": 0},
        {n: v for n, v in IN_FORCE.items() if n != "replies"},
    ):
        findings = found(run, under(run, rules))
        assert [f.seq for f in findings] == of_kinds(under(run, rules), *kinds)
        assert {f.sort for f in findings} == {"not_derivable"}


def test_a_run_without_recorded_rules_is_not_derivable(run: Path) -> None:
    """Every decision is named, none is believed."""
    findings = found(run, under(run, {}))

    assert {f.sort for f in findings} == {"not_derivable"}
    assert set(of_kinds(list(read(run)), "candidate_accepted", "turn_assigned")) <= {
        f.seq for f in findings
    }


def test_each_stretch_of_a_log_has_its_own_rules(run: Path) -> None:
    """A resumed run goes on under the rules of whoever resumed it."""
    records = list(read(run))
    at = of_kinds(records, "candidate_examined")[4]
    mark = RunResumed(versions={}, rules={**IN_FORCE, GATE: 2}, toolchain={"compiler": "fake 1.0"})
    stretches = [*records[:at], Record(seq=at, time_ns=0, actor="director", event=mark)]
    findings = found(run, stretches + [_later(record, at) for record in records[at:]])

    screened = [seq + 1 for seq in of_kinds(records, "candidate_screened") if seq >= at]
    assert [f.seq for f in findings if f.sort == "not_derivable"] == screened


def _later(record: Record, at: int) -> Record:
    because = tuple(seq + (seq >= at) for seq in record.because)
    return record._replace(seq=record.seq + 1, because=because)


def test_digests_of_another_fold_are_counted_not_compared(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another version of the state has other digests, which says nothing about the log."""
    monkeypatch.setattr("decisions.plan.DIGEST_EVERY", 50)
    begin(tmp_path, campaign(max_candidates=12))
    monkeypatch.undo()
    n_digests = len(of_kinds(list(read(tmp_path)), "state_digested"))

    same, other = (fold(under(tmp_path, {**IN_FORCE, "digest": v})) for v in (1, 9))
    assert (same.n_digests, same.n_foreign, same.differs) == (n_digests, 0, None)
    assert (other.n_digests, other.n_foreign, other.differs) == (0, n_digests, None)
    assert n_digests > 2
