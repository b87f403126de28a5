"""Orders as files: commands of other processes leave them in the run folder, the director reads.

A message is one small JSON file, written whole, under the name of its order, which begins with the
time. Nothing that lies in an inbox can stop a run: what is no order is removed, or else left alone.
"""

import os
import re
import stat
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, TypeAdapter

from events.disk import DISK
from events.vocabulary import Order, OrderId, RunInterrupted

FOLDER = "inbox"
MAX_BYTES = 8192
MAX_AT_ONCE = 64
"""Messages of one look; the others wait for the next."""
_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.json")
_ORDER: TypeAdapter[Order | RunInterrupted] = TypeAdapter(
    Annotated[Order | RunInterrupted, Field(discriminator="kind")]
)
_log = structlog.get_logger()


def message(run: Path, order: OrderId) -> Path:
    """Where an order lies until the director has recorded or refused it."""
    return run / FOLDER / f"{order}.json"


def leave(path: Path, order: Order | RunInterrupted) -> None:
    """Leave an order at its `message`; it is durable on return.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    DISK.create(path, order.model_dump_json().encode())
    DISK.sync_folder(path.parent)


class Inbox:
    """The inbox of a run, as its director reads it."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER
        self._left: set[str] = set()
        """Names of messages that cannot be removed."""

    def __call__(self) -> Iterator[Order | RunInterrupted]:
        """Iterate over the orders that wait; each is removed when the next one is asked for."""
        for name in nsmallest(MAX_AT_ONCE, self._names()):
            path = self._folder / name
            try:
                order = _read(path)
            except (OSError, ValueError) as error:
                _log.warning("no order", file=name, why=str(error))
            else:
                yield order
            self._remove(path)

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return [n for n in names if _NAME.fullmatch(n) and n not in self._left]

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            self._left.add(path.name)


def _read(path: Path) -> Order | RunInterrupted:
    """Read a message; no link is followed, and no pipe waited for.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no order of this name.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a plain file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    order = _ORDER.validate_json(data)
    if order.order != path.stem:
        raise ValueError(f"the order inside has the name {order.order}")
    return order
