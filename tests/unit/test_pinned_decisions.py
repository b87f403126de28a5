"""Rules do not change their answers under one version."""

import json

import pytest

from decisions import plan
from tests.support.pinned import DIGESTS, answers, recorded


def test_what_a_rule_answers_changes_only_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit asks the recorded version of a rule: if that answered otherwise, logs would be lies."""
    monkeypatch.setattr(plan, "DIGEST_EVERY", 100)
    pinned = json.loads(DIGESTS.read_text())
    answered = answers(recorded())

    assert {name.split()[0] for name in answered} == {rule.name for rule in plan.RULES}
    changed = sorted(name for name in answered if pinned.get(name) != answered[name])
    assert not changed, (
        f"{changed} answer otherwise than is pinned in {DIGESTS.name}, or are not pinned there: "
        "give each rule that was meant to change the next version in decisions/plan.py, keep its "
        "old form in decisions/policy.py (FORMER) if its logs shall stay derivable, and run "
        "`python -m tests.support.pinned`"
    )
