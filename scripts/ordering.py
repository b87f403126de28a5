"""How a command gives the operator's order to a run: it leaves a message and waits a moment."""

import argparse
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from actors.inbox import leave, message
from decisions.orders import refusal
from events.lock import is_held
from events.log import LOCK_NAME, read
from events.projections.state import State, replay
from events.vocabulary import Order, OrderId, Record, RunInterrupted, Words
from scripts.runs import UsageError, recorded

WAIT_S = 5.0
POLL_S = 0.05
_WORDS: TypeAdapter[str] = TypeAdapter(Words)


def parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """The parser of a command that orders something of a run."""
    made = argparse.ArgumentParser(prog=f"kernelwright {name}", description=about)
    made.add_argument("run", type=Path, metavar="RUN", help="run folder")
    return made


def words(text: str) -> str:
    """Check what a person says; for `argparse`."""
    try:
        return _WORDS.validate_python(text.strip())
    except ValidationError as e:
        problem = e.errors(include_url=False)[0]["msg"]
        raise argparse.ArgumentTypeError(f"{problem}; it has {len(text.strip())}") from None


def give(run: Path, word: Callable[[OrderId], Order | RunInterrupted]) -> int:
    """Give an order and say what became of it; return 0.

    Args:
        run: the run folder.
        word: makes the order of the name that it is given.

    Raises:
        UsageError: it cannot be obeyed.
        LogError: there is no log, or it is damaged.
    """
    order = word(f"{time.time_ns():020d}-{secrets.token_hex(4)}")
    records, _ = recorded(run)
    _check(replay(records), order)
    if isinstance(order, RunInterrupted) and not is_held(run / LOCK_NAME):
        raise UsageError(f"{run} is not running, so there is nothing to stop")
    path = message(run, order.order or "")
    leave(path, order)
    until_s = time.monotonic() + WAIT_S
    while path.exists() and time.monotonic() < until_s:
        time.sleep(POLL_S)
    print(_queued(run) if path.exists() else _delivered(run, order))
    return 0


def _check(state: State, order: Order | RunInterrupted) -> None:
    if (why := refusal(state, order)) is not None:
        raise UsageError(why)


def _delivered(run: Path, order: Order | RunInterrupted) -> str:
    """The message is gone: the order is in the log, or the run has refused it."""
    state = State()
    for record in read(run):
        if _is(record, order):
            return f"delivered: record {record.seq}"
        state.apply(record)
    _check(state, order)
    raise UsageError("the run has refused it; `actors.log` in the run folder says why")


def _is(record: Record, order: Order | RunInterrupted) -> bool:
    return isinstance(record.event, Order | RunInterrupted) and record.event.order == order.order


def _queued(run: Path) -> str:
    if is_held(run / LOCK_NAME):
        return "queued: the run is at work; it takes effect at the next safe point"
    return "queued: the run is not running; it takes effect when it goes on"
