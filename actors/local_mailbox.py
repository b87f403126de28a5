"""Mailboxes in one process: commands are handled one after the other, oldest first."""

import heapq
import time
from collections.abc import Callable, Mapping

from actors.mailboxes import Delivery, handled
from actors.messages import Actor, Command
from decisions.address import address


class LocalMailbox:
    """Runs each command when its answer is asked for.

    A command that is issued again keeps the place of the lost one, so that a resumed run hears
    its answers in the order of a run that was never killed.
    """

    def __init__(
        self, actors: Mapping[str, Actor], wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._actors, self._wait = actors, wait
        self._waiting: list[tuple[int, int, Command]] = []

    def send(self, command: Command) -> None:
        """Queue a command."""
        heapq.heappush(self._waiting, (command.place, command.seq, command))

    def receive(self, timeout_s: float) -> Delivery | None:
        """Handle the oldest command; without one, none will come while this process waits."""
        if not self._waiting:
            self._wait(timeout_s)
            return None
        command = heapq.heappop(self._waiting)[2]
        name = address(command.request)
        return Delivery(command.seq, name, handled(self._actors[name], name, command))
