"""Old events are brought to today's fields, step by step."""

import pytest

from events.upcasters import Chains, Fields, upcast, version


def renamed(fields: Fields) -> Fields:
    """Version 2: `why` is called `reason`."""
    rest = {name: value for name, value in fields.items() if name != "why"}
    return {**rest, "reason": fields["why"]}


def signed(fields: Fields) -> Fields:
    """Version 3: somebody signs."""
    return {**fields, "by": "nobody"}


CHAINS: Chains = {"stopped": (renamed, signed)}


@pytest.mark.parametrize(
    ("stored", "fields"),
    [
        (1, {"kind": "stopped", "why": "x"}),
        (2, {"kind": "stopped", "reason": "x"}),
        (3, {"kind": "stopped", "reason": "x", "by": "nobody"}),
    ],
)
def test_an_event_of_any_version_is_brought_to_todays(stored: int, fields: Fields) -> None:
    """Each upcaster knows two versions only, so that none has to be changed for a new one."""
    today = {"kind": "stopped", "reason": "x", "by": "nobody"}

    assert upcast(fields, stored, CHAINS) == today


def test_a_kind_that_never_changed_is_at_version_one() -> None:
    """Most kinds need no entry."""
    fields = {"kind": "started"}

    assert version("started", CHAINS) == 1
    assert version("stopped", CHAINS) == 3
    assert upcast(fields, 1, CHAINS) is fields


@pytest.mark.parametrize("stored", [0, 4])
def test_a_version_that_does_not_exist_here_is_refused_by_name(stored: int) -> None:
    """Its fields may look like known ones and mean something else."""
    with pytest.raises(ValueError, match=rf"'stopped' in version {stored}, known up to version 3"):
        upcast({"kind": "stopped"}, stored, CHAINS)
