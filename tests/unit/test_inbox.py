"""The inbox: orders are read once, in order; whatever else lies there is no harm."""

import os
from itertools import islice
from pathlib import Path

import pytest

from actors.inbox import MAX_AT_ONCE, MAX_BYTES, Inbox, leave, message
from events.log import read
from events.projections.state import State
from events.vocabulary import (
    BudgetChanged,
    CandidateVetoed,
    LimitChange,
    OperatorContinued,
    OperatorHinted,
    OperatorPaused,
    Order,
    RunInterrupted,
)
from tests.support.operated import name
from tests.support.runs import begin, campaign

ORDERS: tuple[Order | RunInterrupted, ...] = (
    OperatorPaused(order=name(1)),
    OperatorContinued(order=name(2)),
    OperatorHinted(order=name(3), kernel="alpha", text="ü\n" * 200),
    CandidateVetoed(order=name(4), candidate=7, reason="why not"),
    BudgetChanged(
        order=name(5), changes=(LimitChange(resource="tokens", amount=1e6, is_relative=True),)
    ),
    RunInterrupted(order=name(6), reason="stopped by the operator"),
)


def put(run: Path, number: int, data: bytes) -> Path:
    """Leave any bytes where an order could lie."""
    path = message(run, name(number))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_orders_come_as_they_were_left_the_oldest_first(tmp_path: Path) -> None:
    """Whoever writes them does so in a process of its own, and in any order."""
    for order in reversed(ORDERS):
        leave(message(tmp_path, order.order or ""), order)

    assert tuple(Inbox(tmp_path)()) == ORDERS
    assert list((tmp_path / "inbox").iterdir()) == []


def test_a_message_stays_until_its_order_is_durable(tmp_path: Path) -> None:
    """A director that dies while it records an order is given it again."""
    for order in ORDERS[:2]:
        leave(message(tmp_path, order.order or ""), order)

    assert list(islice(Inbox(tmp_path)(), 1)) == [ORDERS[0]]
    assert tuple(Inbox(tmp_path)()) == ORDERS[:2]


def test_no_inbox_has_no_orders(tmp_path: Path) -> None:
    """The first command makes it; a file in its place is no folder."""
    assert list(Inbox(tmp_path)()) == []
    (tmp_path / "inbox").write_text("x")
    assert list(Inbox(tmp_path)()) == []


HOSTILE = (
    b"", b"{}", b"\x00\xff\xfe", b"[" * 5000, b"null", b"x" * (MAX_BYTES + 1),
    b'{"kind": "run_finished", "geomean": 9, "reason": "done"}',
    b'{"kind": "run_interrupted", "reason": "no name"}',
    b'{"kind": "operator_paused", "order": "00000000000000000099-00000000"}',
    b'{"kind": "operator_paused", "order": "../../LOCK"}',
    b'{"kind": "operator_hinted", "order": "%s", "kernel": "alpha", "text": "\\ud800"}',
    b'{"kind": "operator_hinted", "order": "%s", "kernel": "alpha", "text": ""}',
    b'{"kind": "candidate_vetoed", "order": "%s", "candidate": NaN, "reason": "x"}',
    b'{"kind": "budget_changed", "order": "%s", "changes": [{"resource": "device_s",'
    b' "amount": 1e999, "is_relative": false}]}',
)  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE)
def test_what_is_no_order_is_removed(tmp_path: Path, data: bytes) -> None:
    """Each is looked at once; what comes after it is heard."""
    put(tmp_path, 0, data.replace(b"%s", name(0).encode()))
    leave(message(tmp_path, name(1)), ORDERS[0])

    assert list(Inbox(tmp_path)()) == [ORDERS[0]]
    assert list((tmp_path / "inbox").iterdir()) == []


def test_links_pipes_folders_and_locked_files_are_not_read(tmp_path: Path) -> None:
    """A link may lead anywhere, a pipe would be waited for; the target of a link is not touched."""
    secret = tmp_path / "elsewhere.json"
    secret.write_text(ORDERS[0].model_dump_json())
    put(tmp_path, 9, b"").unlink()
    message(tmp_path, name(1)).symlink_to(secret)
    os.mkfifo(message(tmp_path, name(2)))
    message(tmp_path, name(3)).mkdir()
    put(tmp_path, 4, ORDERS[3].model_dump_json().encode()).chmod(0)
    (tmp_path / "inbox" / "notes.json").write_text("mine")
    inbox = Inbox(tmp_path)

    heard = list(inbox())
    assert heard == ([ORDERS[3]] if os.geteuid() == 0 else [])  # root reads what is locked
    assert list(inbox()) == []
    assert secret.exists()
    left = {path.name for path in (tmp_path / "inbox").iterdir()}
    assert left == {"notes.json", f"{name(3)}.json"}


def test_thousands_of_messages_wait_for_their_turn(tmp_path: Path) -> None:
    """One look takes a few of them, so that a step stays short."""
    for number in range(1000):
        put(tmp_path, number, b"{}")
    leave(message(tmp_path, name(2000)), OperatorPaused(order=name(2000)))
    inbox = Inbox(tmp_path)

    looks = [list(inbox()) for _ in range(1001 // MAX_AT_ONCE + 1)]
    assert looks[-1] == [OperatorPaused(order=name(2000))]
    assert not any(looks[:-1])


def test_a_run_with_a_hostile_inbox_ends_as_without_one(tmp_path: Path) -> None:
    """Nor do orders that cannot be obeyed stop it."""
    run = tmp_path / "run"
    for number, data in enumerate(HOSTILE * 20):
        run.mkdir(exist_ok=True)
        put(run, number, data.replace(b"%s", name(number).encode()))
    vetoes = (
        CandidateVetoed(order=name(900), candidate=10**30, reason="none such"),
        CandidateVetoed(order=name(901), candidate=1, reason="the baseline"),
    )
    absurd = LimitChange(resource="tokens", amount=1e300, is_relative=True)
    for order in (*vetoes, BudgetChanged(order=name(902), changes=(absurd,)), BudgetChanged(
        order=name(903), changes=()
    )):  # fmt: skip
        leave(message(run, order.order), order)

    state: State = begin(run, campaign(max_candidates=8), orders=Inbox(run))
    assert state.finished is not None
    assert "operator" not in {record.actor for record in read(run)}
    assert list((run / "inbox").iterdir()) == []
